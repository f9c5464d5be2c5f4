//! Which queue a packet comes to, and which processor goes on with it (Linux, Documentation/networking/scaling.rst).

/// The hash of a connection by which queues and processors are chosen. A NIC's is Toeplitz' with a key of its own; of this
/// one, too, each connection's is another, and the same in each run.
#[inline]
pub fn hash(flow: u32) -> u32 {
    // MurmurHash3's finalizer, which lets every bit act on every other.
    let mut bits = flow.wrapping_add(1);
    bits = (bits ^ bits >> 16).wrapping_mul(0x85eb_ca6b);
    bits = (bits ^ bits >> 13).wrapping_mul(0xc2b2_ae35);
    bits ^ bits >> 16
}

/// One of `count` by a hash: reciprocal_scale().
#[inline]
pub fn pick(hash: u32, count: u32) -> u32 {
    ((u64::from(hash) * u64::from(count)) >> 32) as u32
}

/// Transmit packet steering: the queue by which a processor sends. Queues belong to processors in turn; where there are fewer,
/// processors share them in turn, and where a processor has several the hash chooses (get_xps_queue()).
pub fn sends_by(cpu: u32, cpus: u32, queues: u32, hash: u32) -> u32 {
    if queues <= cpus {
        return cpu % queues;
    }
    let own = (queues - cpu).div_ceil(cpus);
    cpu + cpus * pick(hash, own)
}

/// Receive flow steering: the processor on which each connection's data was read last, and when packets may move there.
#[derive(Clone, Debug)]
pub struct Rfs {
    /// rps_sock_flow_table: by hash, the processor that read last.
    wanted: Vec<Option<u32>>,
    /// rps_flow_table: by hash, the processor that packets go to, and how many it had been given when the last one was.
    flows: Vec<Option<(u32, u64)>>,
}

impl Rfs {
    /// A table with so many places, which is rounded up to a power of two.
    pub fn new(entries: u32) -> Rfs {
        let entries = entries.next_power_of_two() as usize;
        Rfs {
            wanted: vec![None; entries],
            flows: vec![None; entries],
        }
    }

    fn place(&self, hash: u32) -> usize {
        hash as usize & (self.wanted.len() - 1)
    }

    /// A connection's data is read on that processor.
    pub fn reads_on(&mut self, hash: u32, cpu: u32) {
        let place = self.place(hash);
        self.wanted[place] = Some(cpu);
    }

    /// The processor for the next packet, if the table knows one. It changes only once what went to the old one has been
    /// processed there, so that nothing is overtaken: `processed` says how many packets a processor has done.
    pub fn choose(&mut self, hash: u32, processed: impl Fn(u32) -> u64) -> Option<u32> {
        let place = self.place(hash);
        let wanted = self.wanted[place]?;
        match self.flows[place] {
            Some((cpu, given)) if cpu != wanted && processed(cpu) < given => Some(cpu),
            _ => Some(wanted),
        }
    }

    /// A packet has gone to that processor, as the last of `given` so far.
    pub fn went_to(&mut self, hash: u32, cpu: u32, given: u64) {
        let place = self.place(hash);
        self.flows[place] = Some((cpu, given));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_spread_connections_over_all_queues() {
        for queues in [2, 3, 16, 128] {
            let mut counts = vec![0; queues as usize];
            for flow in 0..10_000 {
                counts[pick(hash(flow), queues) as usize] += 1;
            }
            let mean = 10_000 / queues;
            for count in counts {
                assert!(
                    (mean / 2..=mean * 2).contains(&count),
                    "{count} of {queues}"
                );
            }
        }
    }

    #[test]
    fn a_processor_sends_by_queues_of_its_own_while_there_are_enough() {
        for (cpus, queues) in [(1, 1), (4, 4), (3, 8), (4, 128)] {
            let mut used = vec![false; queues as usize];
            for flow in 0..10_000 {
                let cpu = flow % cpus;
                let queue = sends_by(cpu, cpus, queues, hash(flow));
                assert_eq!(queue % cpus, cpu);
                used[queue as usize] = true;
            }
            assert!(used.iter().all(|&is_used| is_used), "{cpus} {queues}");
        }
        let shared: Vec<u32> = (0..5).map(|cpu| sends_by(cpu, 5, 2, 7)).collect();
        assert_eq!(shared, [0, 1, 0, 1, 0]);
    }

    #[test]
    fn a_flow_moves_to_its_reader_once_its_old_queue_has_drained() {
        let mut rfs = Rfs::new(100);
        assert_eq!(rfs.choose(7, |_| 0), None);
        rfs.reads_on(7, 1);
        assert_eq!(rfs.choose(7, |_| 0), Some(1));
        rfs.went_to(7, 1, 5);
        rfs.reads_on(7, 3);
        assert_eq!(rfs.choose(7, |_| 4), Some(1));
        assert_eq!(rfs.choose(7, |_| 5), Some(3));
    }
}
