//! An output as one number, which any change of it changes.

use knee_sim::Output;
use knee_tables::{Table, Values};

/// FNV-1a.
struct Digest(u64);

impl Digest {
    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn add_table(&mut self, table: &impl Table) {
        for column in table.values() {
            match column {
                Values::I32(v) => v.iter().for_each(|v| self.add(&v.to_le_bytes())),
                Values::I64(v) => v.iter().for_each(|v| self.add(&v.to_le_bytes())),
                Values::F64(v) => v.iter().for_each(|v| self.add(&v.to_le_bytes())),
                other => self.add(format!("{other:?}").as_bytes()),
            }
        }
    }
}

/// Of every value of every table, and of every packet if they were captured.
pub fn digest(output: &Output) -> u64 {
    let mut digest = Digest(0xcbf2_9ce4_8422_2325);
    digest.add_table(&output.flows);
    digest.add_table(&output.samples);
    digest.add_table(&output.queue);
    digest.add_table(&output.events);
    for packet in &output.capture {
        digest.add(format!("{packet:?}").as_bytes());
    }
    digest.0
}
