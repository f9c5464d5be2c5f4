//! Which connection a packet belongs to, and what became of each.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use knee_tables::Histogram;
use serde::{Deserialize, Serialize};

use crate::{LinkConfig, SERVICE_PORT};

/// Both ends of a packet, as its headers say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tuple {
    pub source: Ipv4Addr,
    pub destination: Ipv4Addr,
    pub source_port: u16,
    pub destination_port: u16,
}

/// What the link did to one connection's packets in the data direction.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FlowReport {
    /// As its data packets have it; `None`: everything that is not IPv4.
    pub tuple: Option<Tuple>,
    /// Which `[[flow]]` table its addresses belong to.
    pub group: u32,
    /// Flow number, when its port tells it.
    pub number: Option<u32>,
    /// Packets with payload that came in.
    pub data_pkts: u64,
    /// Lost by the path's own loss.
    pub path_lost_pkts: u64,
    /// Dropped by the queue.
    pub queue_dropped_pkts: u64,
    /// Waits in the queue, µs, of packets that count.
    pub queue_delay_us: Histogram,
}

/// The connections seen in one direction, by a dense index.
pub struct Flows {
    by_tuple: HashMap<Option<Tuple>, u32>,
    /// The last packet's, because packets come in trains.
    last: (Option<Tuple>, u32),
    groups: HashMap<Ipv4Addr, u32>,
    ports: std::ops::Range<u32>,
    /// How many there are at each side; `None`: each connection has its own.
    hosts: [Option<u32>; 2],
    pub reports: Vec<FlowReport>,
}

impl Flows {
    pub fn new(config: &LinkConfig) -> Flows {
        let mut groups = HashMap::new();
        for (number, group) in config.groups.iter().enumerate() {
            groups.insert(group.sender, number as u32);
            groups.insert(group.receiver, number as u32);
        }
        let first = u32::from(config.first_port);
        Flows {
            by_tuple: HashMap::new(),
            last: (None, u32::MAX),
            groups,
            ports: first..first + config.flows,
            hosts: config.hosts,
            reports: Vec::new(),
        }
    }

    /// The connection's index.
    #[inline]
    pub fn index(&mut self, tuple: Option<Tuple>) -> u32 {
        if self.last.0 == tuple && self.last.1 != u32::MAX {
            return self.last.1;
        }
        let index = match self.by_tuple.get(&tuple) {
            Some(&index) => index,
            None => self.add(tuple),
        };
        self.last = (tuple, index);
        index
    }

    /// The connection's sending and receiving host: connections are spread over each side's hosts in turn, those whose number
    /// is not known as they appear.
    #[inline]
    pub fn hosts(&self, index: u32) -> [u32; 2] {
        let number = self.reports[index as usize].number;
        let number = number.unwrap_or(self.ports.len() as u32 + index);
        self.hosts
            .map(|hosts| hosts.map_or(number, |hosts| number % hosts))
    }

    fn add(&mut self, tuple: Option<Tuple>) -> u32 {
        let group = tuple.and_then(|tuple| {
            self.groups
                .get(&tuple.source)
                .or_else(|| self.groups.get(&tuple.destination))
        });
        let number = tuple.and_then(|tuple| {
            let port = match (tuple.source_port, tuple.destination_port) {
                (SERVICE_PORT, port) | (port, SERVICE_PORT) => u32::from(port),
                _ => return None,
            };
            self.ports.contains(&port).then(|| port - self.ports.start)
        });
        let index = self.reports.len() as u32;
        self.reports.push(FlowReport {
            tuple,
            group: group.copied().unwrap_or(0),
            number,
            data_pkts: 0,
            path_lost_pkts: 0,
            queue_dropped_pkts: 0,
            queue_delay_us: Histogram::default(),
        });
        self.by_tuple.insert(tuple, index);
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_of_one_flow_table_are_spread_over_the_scenarios_hosts() {
        let mut flows = Flows {
            by_tuple: HashMap::new(),
            last: (None, u32::MAX),
            groups: HashMap::new(),
            ports: 10_000..10_006,
            hosts: [Some(2), None],
            reports: Vec::new(),
        };
        // The last is not of the scenario.
        let hosts = [10_000, 10_005, 10_002, 40_000].map(|port| {
            let index = flows.index(Some(Tuple {
                source: Ipv4Addr::new(10, 77, 0, 1),
                destination: Ipv4Addr::new(10, 78, 0, 1),
                source_port: port,
                destination_port: SERVICE_PORT,
            }));
            flows.hosts(index)
        });
        assert_eq!(hosts, [[0, 0], [1, 5], [0, 2], [1, 9]]);
    }
}
