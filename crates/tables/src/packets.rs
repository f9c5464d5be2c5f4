//! `packets`: what passed the hosts' network devices.

use crate::table;

table! {
    /// One row per packet that a host's device sent or received, where a run was asked to capture them (`--capture`), in order
    /// of host and time. `knee export --format pcapng` writes them for Wireshark.
    "packets" Packets of Packet {
        cell: i32, "", "tcpknee", "cell of the matrix";
        rep: i32, "", "tcpknee", "repetition, from 0";
        t_ns: i64, "ns", "tpacket2_hdr.tp_sec, tp_nsec", "when the device sent or received it, since the run began";
        host: &'static str, "", "tcpknee", "whose device: sender or receiver";
        is_outbound: bool, "", "sockaddr_ll.sll_pkttype", "the host sent it; of the loopback device packets are kept once, as received";
        length_bytes: i64, "bytes", "tpacket2_hdr.tp_len", "from the IP header on; with TSO and GRO that of what TCP sent and got, of several packets of the path";
        header: Vec<u8>, "", "packet(7)", "its headers of IP and TCP or UDP, without what they carry";
    }
}
