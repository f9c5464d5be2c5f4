//! The variables of a log whose meaning we know, and the columns they fill.

/// How a variable is written, and what becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text as it stands.
    Text,
    /// Text of which there are few, stored as a dictionary.
    Name,
    /// A whole number.
    Integer,
    /// Decimal seconds, stored in µs.
    Seconds,
    /// Whole µs, as the kernel's `tcp_info` has them.
    Microseconds,
    /// A list of whole numbers over upstream servers, stored as their sum.
    IntegerSum,
    /// A list of seconds over upstream servers, stored as their sum in µs.
    SecondsSum,
    /// The address of one end, as nginx knows it: anonymised before it is stored.
    Address,
    /// What is told of addresses, or a list of them: anonymised before it is stored.
    Addresses,
    /// The request line, stored in three columns.
    Request,
    /// Decimal Unix seconds.
    UnixTime,
    /// `$time_iso8601`.
    IsoTime,
    /// `$time_local`.
    LocalTime,
}

impl Kind {
    pub fn is_time(self) -> bool {
        matches!(self, Kind::UnixTime | Kind::IsoTime | Kind::LocalTime)
    }
}

/// A variable of nginx that has a column of its own name, unit and meaning.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Without its `$`.
    pub variable: &'static str,
    pub kind: Kind,
    pub column: &'static str,
    pub unit: &'static str,
    pub doc: &'static str,
    pub source: &'static str,
}

macro_rules! known {
    ($($variable:literal: $kind:ident => $column:literal, $unit:literal, $doc:literal;)*) => {
        &[$(Known {
            variable: $variable,
            kind: Kind::$kind,
            column: $column,
            unit: $unit,
            doc: $doc,
            source: concat!("nginx $", $variable),
        }),*]
    };
}

/// Source: nginx documentation, "Alphabetical index of variables".
pub const KNOWN: &[Known] = known! {
    "msec": UnixTime => "t_unix_ns", "ns", "end of the request, wall clock";
    "time_iso8601": IsoTime => "t_unix_ns", "ns", "end of the request, wall clock, whole seconds";
    "time_local": LocalTime => "t_unix_ns", "ns", "end of the request, wall clock, whole seconds";
    "request": Request => "request", "", "request line";
    "status": Integer => "status", "", "status of the answer";
    "request_time": Seconds => "request_time_us", "us", "from the first byte read of the client to the last byte sent to it";
    "bytes_sent": Integer => "bytes_sent", "bytes", "sent to the client, with headers";
    "body_bytes_sent": Integer => "body_bytes_sent", "bytes", "sent to the client, without headers";
    "request_length": Integer => "request_length_bytes", "bytes", "length of the request, with its line, headers and body";
    "connection": Integer => "connection", "", "serial number of the connection in its worker";
    "connection_requests": Integer => "connection_requests", "", "requests made so far on the connection";
    "connection_time": Seconds => "connection_time_us", "us", "age of the connection";
    "remote_addr": Address => "remote_addr", "", "address of the client";
    "realip_remote_addr": Address => "realip_remote_addr", "", "address of the client before the realip module";
    "proxy_protocol_addr": Address => "proxy_protocol_addr", "", "address of the client by the PROXY protocol";
    "proxy_add_x_forwarded_for": Addresses => "proxy_add_x_forwarded_for", "", "addresses of the client and of the proxies before";
    "http_x_forwarded_for": Addresses => "http_x_forwarded_for", "", "addresses of the client and of the proxies before, as told by them";
    "http_x_real_ip": Addresses => "http_x_real_ip", "", "address of the client, as a proxy told it";
    "http_true_client_ip": Addresses => "http_true_client_ip", "", "address of the client, as a proxy told it";
    "http_cf_connecting_ip": Addresses => "http_cf_connecting_ip", "", "address of the client, as a proxy told it";
    "http_forwarded": Addresses => "http_forwarded", "", "RFC 7239, as told by the proxies";
    "server_addr": Address => "server_addr", "", "address of the server that took the request";
    "upstream_addr": Addresses => "upstream_addr", "", "addresses of the upstream servers that were asked";
    "http_user_agent": Name => "http_user_agent", "", "the client's name of itself";
    "http_host": Name => "http_host", "", "host that the client asked for";
    "host": Name => "host", "", "host that the client asked for, or the server's name";
    "server_name": Name => "server_name", "", "name of the server that took the request";
    "server_protocol": Name => "server_protocol", "", "protocol of the request";
    "request_method": Name => "request_method", "", "method of the request";
    "scheme": Name => "scheme", "", "http or https";
    "ssl_protocol": Name => "ssl_protocol", "", "version of TLS";
    "ssl_cipher": Name => "ssl_cipher", "", "cipher of the connection";
    "upstream_status": Name => "upstream_status", "", "status of the answer of each upstream server";
    "upstream_cache_status": Name => "upstream_cache_status", "", "what the cache did: HIT, MISS …";
    "remote_port": Integer => "remote_port", "", "port of the client";
    "server_port": Integer => "server_port", "", "port of the server that took the request";
    "tcpinfo_rtt": Microseconds => "srtt_us", "us", "smoothed round-trip time of the client's connection when the request ended";
    "tcpinfo_rttvar": Microseconds => "rttvar_us", "us", "round-trip time variation of it";
    "tcpinfo_snd_cwnd": Integer => "snd_cwnd", "segments", "congestion window towards the client when the request ended";
    "tcpinfo_rcv_space": Integer => "rcv_space_bytes", "bytes", "receive buffer space of the connection";
    "upstream_response_time": SecondsSum => "upstream_response_time_us", "us", "time until the upstream servers' whole answers, summed";
    "upstream_connect_time": SecondsSum => "upstream_connect_time_us", "us", "time to connect to the upstream servers, summed";
    "upstream_header_time": SecondsSum => "upstream_header_time_us", "us", "time until the upstream servers' headers, summed";
    "upstream_queue_time": SecondsSum => "upstream_queue_time_us", "us", "time in the upstream queue, summed";
    "upstream_bytes_received": IntegerSum => "upstream_bytes_received", "bytes", "received of the upstream servers, summed";
    "upstream_bytes_sent": IntegerSum => "upstream_bytes_sent", "bytes", "sent to the upstream servers, summed";
    "upstream_response_length": IntegerSum => "upstream_response_length_bytes", "bytes", "lengths of the upstream servers' answers, summed";
};

/// The three columns of `$request`, in order.
pub const REQUEST: [(&str, Kind, &str); 3] = [
    ("request_method", Kind::Name, "method of the request line"),
    (
        "request_path",
        Kind::Text,
        "target of the request line; the whole line when it is none of HTTP",
    ),
    (
        "request_protocol",
        Kind::Name,
        "protocol of the request line",
    ),
];

/// What we know of a variable; `None`: it becomes a text column of its own name.
pub fn known(variable: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.variable == variable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_carry_the_unit_that_their_kind_gives() {
        for known in KNOWN {
            match known.kind {
                Kind::Seconds | Kind::SecondsSum | Kind::Microseconds => {
                    assert!(known.column.ends_with("_us"), "{}", known.column);
                    assert_eq!(known.unit, "us");
                }
                Kind::UnixTime | Kind::IsoTime | Kind::LocalTime => {
                    assert_eq!((known.column, known.unit), ("t_unix_ns", "ns"));
                }
                _ if known.unit == "bytes" => assert!(known.column.contains("bytes")),
                _ => assert!(!known.column.contains("bytes") && !known.column.ends_with("_us")),
            }
        }
    }
}
