//! A connection: its handshake, its two senders and how it ends.

use crate::pcap::interval::Interval;
use crate::pcap::packet::{ACK, Endpoint, RST, SYN, Segment};
use crate::pcap::sender::{Heard, Sender};

/// Two legs of a round trip below this together are the hosts' own time as much
/// as the path's: they tell nothing of the place.
const LEGS_NS_MIN: i64 = 200_000;
/// A packet seen in a second place within this time is the same one again; later,
/// the connection has moved.
const PLACE_KEPT_NS: i64 = 1_000_000_000;

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Fin,
    Rst,
    Open,
    Reused,
    Left,
}

impl Ended {
    pub fn name(self) -> &'static str {
        match self {
            Ended::Fin => "fin",
            Ended::Rst => "rst",
            Ended::Open => "open",
            Ended::Reused => "reused",
            Ended::Left => "left",
        }
    }
}

/// Times of the handshake; taken as told only if nothing of it was sent again.
#[derive(Default)]
struct Handshake {
    syn_ns: Option<i64>,
    syn_ack_ns: Option<i64>,
    ack_ns: Option<i64>,
}

/// One side.
pub struct Side {
    pub endpoint: Endpoint,
    pub sender: Sender,
    interval: Interval,
    place: Option<(u64, i64)>,
}

impl Side {
    fn new(endpoint: Endpoint) -> Side {
        Side {
            endpoint,
            sender: Sender::default(),
            interval: Interval::default(),
            place: None,
        }
    }

    /// Is a packet of this side seen where its others are?
    fn is_in_place(&mut self, t_ns: i64, place: u64) -> bool {
        match self.place {
            Some((known, last_ns)) if known != place && t_ns - last_ns < PLACE_KEPT_NS => false,
            _ => {
                self.place = Some((place, t_ns));
                true
            }
        }
    }
}

pub struct Connection {
    pub number: i64,
    pub first_ns: i64,
    pub last_ns: i64,
    /// The one that sent the first packet, then the other.
    pub sides: [Side; 2],
    /// The side whose SYN was seen, or implied by a SYN-ACK.
    pub opened_by: Option<usize>,
    handshake: Handshake,
    was_reset: bool,
}

/// Takes what connections tell while their packets are read.
pub trait Told {
    /// Length of the intervals in which ACKs are told; `None`: each ACK is.
    fn every_ns(&self) -> Option<i64>;
    /// An ACK, which that side heard.
    fn ack(&mut self, connection: &Connection, side: usize, t_ns: i64, heard: &Heard);
    /// The ACKs of an interval, which that side heard.
    fn interval(&mut self, connection: &Connection, side: usize, interval: &Interval);
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    Yes,
    /// It was captured before, in another place.
    Again,
}

/// The parts of a round trip on either side of the capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Legs {
    pub local_ns: i64,
    pub remote_ns: i64,
}

impl Connection {
    pub fn new(number: i64, t_ns: i64, segment: &Segment) -> Connection {
        Connection {
            number,
            first_ns: t_ns,
            last_ns: t_ns,
            sides: [segment.source, segment.destination].map(Side::new),
            opened_by: None,
            handshake: Handshake::default(),
            was_reset: false,
        }
    }

    /// Does a segment begin another connection between the same ports?
    pub fn is_ended_by(&self, segment: &Segment) -> bool {
        let sender = &self.sides[self.from(segment)].sender;
        let is_opening = segment.has(SYN) && !segment.has(ACK);
        let is_other = if sender.syns == 0 {
            // A SYN-ACK may be captured before its SYN, data not.
            self.sides
                .iter()
                .any(|side| side.sender.counts.bytes_sent > 0)
        } else {
            sender.isn != segment.seq
        };
        is_opening && (self.opened_by.is_none() || is_other)
    }

    /// How it stands.
    pub fn ended(&self) -> Ended {
        if self.was_reset {
            Ended::Rst
        } else if self.sides.iter().all(|side| side.sender.fin_acked) {
            Ended::Fin
        } else {
            Ended::Open
        }
    }

    /// Pieces of memory that grow with what is outstanding.
    pub fn entries(&self) -> usize {
        self.sides.iter().map(|side| side.sender.entries()).sum()
    }

    /// Gives back half of them.
    pub fn forget(&mut self) {
        self.sides.iter_mut().for_each(|side| side.sender.forget());
    }

    /// Takes a packet, and tells what it says.
    pub fn packet(&mut self, t_ns: i64, segment: &Segment, told: &mut impl Told) -> Taken {
        let from = self.from(segment);
        let to = 1 - from;
        if !self.sides[from].is_in_place(t_ns, segment.place) {
            return Taken::Again;
        }
        for side in 0..2 {
            if self.sides[side].interval.is_over(t_ns, told.every_ns()) {
                self.tell_interval(side, told);
            }
        }
        self.last_ns = self.last_ns.max(t_ns);
        self.shake(t_ns, from, segment);
        let mss = self.mss_bytes();
        let rtt_ns = self.handshake_ns();
        self.sides[from].sender.send(t_ns, segment, mss, rtt_ns);
        let scale = self.scale(from);
        let heard = self.sides[to].sender.hear(t_ns, segment, scale, mss);
        self.was_reset |= segment.has(RST);
        if heard.is_news && self.sides[to].sender.counts.bytes_sent > 0 {
            if self.sides[to].interval.add(t_ns, &heard, told.every_ns()) {
                return Taken::Yes;
            }
            told.ack(self, to, t_ns, &heard);
        }
        Taken::Yes
    }

    /// Tells the intervals under way.
    pub fn finish(&mut self, told: &mut impl Told) {
        for side in 0..2 {
            if self.sides[side].interval.is_open() {
                self.tell_interval(side, told);
            }
        }
    }

    fn tell_interval(&mut self, side: usize, told: &mut impl Told) {
        let interval = std::mem::take(&mut self.sides[side].interval);
        told.interval(self, side, &interval);
    }

    fn from(&self, segment: &Segment) -> usize {
        usize::from(segment.source != self.sides[0].endpoint)
    }

    fn shake(&mut self, t_ns: i64, from: usize, segment: &Segment) {
        let times = &mut self.handshake;
        match (segment.has(SYN), segment.has(ACK)) {
            (true, false) => {
                times.syn_ns.get_or_insert(t_ns);
                self.opened_by.get_or_insert(from);
            }
            (true, true) => {
                times.syn_ack_ns.get_or_insert(t_ns);
                self.opened_by.get_or_insert(1 - from);
            }
            (false, true) if times.syn_ack_ns.is_some() && self.opened_by == Some(from) => {
                times.ack_ns.get_or_insert(t_ns);
            }
            _ => {}
        }
    }

    /// The times of SYN, SYN-ACK and ACK, where each was sent once.
    fn handshake(&self) -> Option<[i64; 3]> {
        let times = &self.handshake;
        let found = [times.syn_ns?, times.syn_ack_ns?, times.ack_ns?];
        let once = self.sides.iter().all(|side| side.sender.syns == 1);
        (once && found.is_sorted()).then_some(found)
    }

    /// Its round-trip time.
    pub fn handshake_ns(&self) -> Option<i64> {
        let [syn_ns, _, ack_ns] = self.handshake()?;
        Some(ack_ns - syn_ns)
    }

    pub fn has_both_syns(&self) -> bool {
        self.sides.iter().all(|side| side.sender.syns > 0)
    }

    /// Payload of a full segment, where the handshake told it.
    pub fn mss_bytes(&self) -> Option<u64> {
        let [one, other] = &self.sides;
        self.has_both_syns()
            .then(|| one.sender.mss_bytes(&other.sender))
            .flatten()
    }

    /// The shift of the windows that a side allows.
    pub fn scale(&self, side: usize) -> Option<u8> {
        let scale = |side: usize| self.sides[side].sender.window_scale;
        self.has_both_syns()
            .then(|| match (scale(side), scale(1 - side)) {
                (Some(scale), Some(_)) => scale,
                _ => 0,
            })
    }

    /// The side that sent more; between equals, the one that opened it.
    pub fn local(&self) -> usize {
        let sent = |side: usize| self.sides[side].sender.counts.bytes_sent;
        match sent(0).cmp(&sent(1)) {
            std::cmp::Ordering::Less => 1,
            std::cmp::Ordering::Greater => 0,
            std::cmp::Ordering::Equal => self.opened_by.unwrap_or(0),
        }
    }

    /// The legs of a round trip, as the side `local` has them.
    pub fn legs(&self, local: usize) -> Option<Legs> {
        if let Some([syn_ns, syn_ack_ns, ack_ns]) = self.handshake() {
            let (near, far) = (ack_ns - syn_ack_ns, syn_ack_ns - syn_ns);
            return Some(if self.opened_by == Some(local) {
                Legs {
                    local_ns: near,
                    remote_ns: far,
                }
            } else {
                Legs {
                    local_ns: far,
                    remote_ns: near,
                }
            });
        }
        let sender = &self.sides[local].sender;
        let by_data_ns = sender.rtt.least().map(|us| us as i64 * 1000);
        Some(Legs {
            // The far side's stamps come back from this one.
            local_ns: self.sides[1 - local].sender.echo_ns_min?,
            remote_ns: by_data_ns.into_iter().chain(sender.rtt_ts_ns_min).min()?,
        })
    }

    /// Where it was captured, as the side `local` has it: at the sender, where
    /// the leg to it is less than a tenth of the whole.
    pub fn vantage(&self, local: usize) -> Option<&'static str> {
        let Legs {
            local_ns,
            remote_ns,
        } = self.legs(local)?;
        let whole_ns = local_ns + remote_ns;
        if whole_ns < LEGS_NS_MIN {
            return None;
        }
        Some(match (local_ns, remote_ns) {
            _ if local_ns < whole_ns / 10 => "sender",
            _ if remote_ns < whole_ns / 10 => "receiver",
            _ => "middle",
        })
    }

    /// Are packets of only one side in the capture?
    pub fn is_one_way(&self) -> bool {
        self.sides
            .iter()
            .any(|side| side.sender.counts.packets == 0)
    }

    /// May more of it come?
    pub fn is_over(&self) -> bool {
        self.ended() != Ended::Open
    }
}
