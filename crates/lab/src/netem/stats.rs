//! What the router's qdiscs count, read by rtnetlink.

use std::io;

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcMessage, TcStats2};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

/// Answers are cut into messages of at most this.
const ANSWER_BYTES: usize = 32 * 1024;

/// A qdisc's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub sent_pkts: u32,
    pub sent_bytes: u64,
    /// Of the qdisc and of those below it.
    pub dropped_pkts: u32,
    pub queue_pkts: u32,
    pub queue_bytes: u32,
}

/// Which qdisc: its device's index and the major number of its handle.
pub type Which = (i32, u16);

/// A line to the kernel, for one network namespace.
pub struct Reader {
    socket: Socket,
    buffer: Vec<u8>,
}

impl Reader {
    /// For the network namespace of this thread.
    pub fn new() -> io::Result<Self> {
        let socket = Socket::new(NETLINK_ROUTE)?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self {
            socket,
            buffer: Vec::with_capacity(ANSWER_BYTES),
        })
    }

    /// The counters of every qdisc of the namespace that has a handle.
    pub fn read(&mut self) -> io::Result<Vec<(Which, Counters)>> {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_DUMP;
        let ask = RouteNetlinkMessage::GetQueueDiscipline(TcMessage::default());
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(ask));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        let mut found = Vec::new();
        loop {
            self.buffer.clear();
            self.socket.recv(&mut self.buffer, 0)?;
            if parse(&self.buffer, &mut found)? {
                return Ok(found);
            }
        }
    }
}

/// Returns whether the answer ends here.
fn parse(mut bytes: &[u8], found: &mut Vec<(Which, Counters)>) -> io::Result<bool> {
    while !bytes.is_empty() {
        let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(bytes)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        match message.payload {
            NetlinkPayload::Done(_) => return Ok(true),
            NetlinkPayload::Error(error) => return Err(error.to_io()),
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewQueueDiscipline(qdisc)) => {
                let which = (qdisc.header.index, qdisc.header.handle.major);
                found.push((which, counters(&qdisc.attributes)));
            }
            _ => {}
        }
        // Messages are aligned to four bytes.
        let length = (message.header.length as usize).next_multiple_of(4);
        bytes = &bytes[length.min(bytes.len())..];
    }
    Ok(false)
}

fn counters(attributes: &[TcAttribute]) -> Counters {
    let mut found = Counters::default();
    for attribute in attributes {
        let TcAttribute::Stats2(stats) = attribute else {
            continue;
        };
        for stat in stats {
            match stat {
                TcStats2::Basic(basic) => {
                    found.sent_bytes = basic.bytes;
                    found.sent_pkts = basic.packets;
                }
                TcStats2::Queue(queue) => {
                    found.dropped_pkts = queue.drops;
                    found.queue_pkts = queue.qlen;
                    found.queue_bytes = queue.backlog;
                }
                _ => {}
            }
        }
    }
    found
}
