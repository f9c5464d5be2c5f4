//! Ports that `ss` prints as names, as it does without `-n`.

/// The number of a port of TCP by the name that distributions give it. Their lists
/// are long, and other hosts' are not at hand: these are those of servers.
///
/// Source: IANA, Service Name and Transport Protocol Port Number Registry;
/// `/etc/services` of Debian and Fedora, where that says less.
const NAMED: [(&str, i32); 70] = [
    ("amqp", 5672),
    ("amqps", 5671),
    ("bgp", 179),
    ("bgpd", 2605),
    ("cisco-sccp", 2000),
    ("commplex-link", 5001),
    ("commplex-main", 5000),
    ("discard", 9),
    ("distinct", 9999),
    ("domain", 53),
    ("domain-s", 853),
    ("echo", 7),
    ("epmap", 135),
    ("epmd", 4369),
    ("etcd-client", 2379),
    ("etcd-server", 2380),
    ("ftp", 21),
    ("ftp-data", 20),
    ("git", 9418),
    ("hkp", 11371),
    ("http", 80),
    ("http-alt", 8080),
    ("https", 443),
    ("imap", 143),
    ("imap2", 143),
    ("imaps", 993),
    ("ipp", 631),
    ("ircd", 6667),
    ("iscsi-target", 3260),
    ("iso-tsap", 102),
    ("kerberos", 88),
    ("ldap", 389),
    ("ldaps", 636),
    ("microsoft-ds", 445),
    ("mqtt", 1883),
    ("ms-sql-s", 1433),
    ("ms-wbt-server", 3389),
    ("mysql", 3306),
    ("netbios-ssn", 139),
    ("nfs", 2049),
    ("nntp", 119),
    ("ntp", 123),
    ("openvpn", 1194),
    ("pcsync-https", 8443),
    ("pop3", 110),
    ("pop3s", 995),
    ("postgres", 5432),
    ("postgresql", 5432),
    ("pptp", 1723),
    ("redis", 6379),
    ("rsync", 873),
    ("rtsp", 554),
    ("secure-mqtt", 8883),
    ("sip", 5060),
    ("sips", 5061),
    ("smtp", 25),
    ("smux", 199),
    ("snmp", 161),
    ("socks", 1080),
    ("ssh", 22),
    ("submission", 587),
    ("submissions", 465),
    ("sunrpc", 111),
    ("svn", 3690),
    ("syslog-tls", 6514),
    ("telnet", 23),
    ("webcache", 8080),
    ("www", 80),
    ("x11", 6000),
    ("xmpp-client", 5222),
];

pub fn number(name: &str) -> Option<i32> {
    let at = NAMED.binary_search_by_key(&name, |(name, _)| name);
    at.ok().map(|at| NAMED[at].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order_and_each_once() {
        assert!(NAMED.windows(2).all(|two| two[0].0 < two[1].0));
        assert_eq!([number("ssh"), number("sshd")], [Some(22), None]);
    }
}
