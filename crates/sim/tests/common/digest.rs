//! An output as one number, which any change of it changes.

use std::hash::Hasher;

use fnv::FnvHasher;
use knee_sim::Output;
use knee_tables::{Table, Values};

#[derive(Default)]
struct Digest(FnvHasher);

impl Digest {
    fn add(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
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
    let mut digest = Digest::default();
    digest.add_table(&output.flows);
    digest.add_table(&output.samples);
    digest.add_table(&output.queue);
    digest.add_table(&output.events);
    for packet in &output.capture {
        digest.add(format!("{packet:?}").as_bytes());
    }
    digest.0.finish()
}
