//! Takes the records from the kernel.

use std::path::Path;
use std::time::Duration;

use libbpf_rs::{MapCore, ObjectBuilder, RingBufferBuilder};

use super::op_record::OpRecord;

/// How long the recorder sleeps when nothing comes, so that it sees the end in time.
const POLL: Duration = Duration::from_millis(20);

/// What a recording lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Records that found the buffer full. Each is a gap in the numbers of its flow.
    pub lost: u64,
}

/// Registers the recorder in `object` (`build/bpf/record_NAME.bpf.o`) as `knee_rec_NAME`, calls `ready`, and hands
/// each record to `take` until `is_over`. Sockets that choose the name meanwhile are recorded; the name is free
/// again afterwards, and a socket that still runs it goes on with the kernel's algorithm.
///
/// Errors are those of libbpf: no such file, no BTF, no privilege, a program refused, the name taken.
pub fn record(
    object: &Path,
    ready: impl FnOnce(),
    is_over: impl Fn() -> bool,
    mut take: impl FnMut(&OpRecord),
) -> libbpf_rs::Result<Recorded> {
    let mut object = ObjectBuilder::default().open_file(object)?.load()?;
    let link = object
        .maps_mut()
        .find(|map| map.name() == "recorder")
        .ok_or_else(|| missing("recorder"))?
        .attach_struct_ops()?;
    let records = object
        .maps()
        .find(|map| map.name() == "records")
        .ok_or_else(|| missing("records"))?;
    let mut builder = RingBufferBuilder::new();
    builder.add(&records, |bytes| {
        let record = OpRecord::from_bytes(bytes)
            .expect("struct record of bpf/record.h has the size of OpRecord");
        take(&record);
        0
    })?;
    let ring = builder.build()?;

    ready();
    while !is_over() {
        ring.poll(POLL)?;
    }
    drop(link);
    ring.consume()?;

    Ok(Recorded {
        lost: knee_loader::lost(&object)?,
    })
}

fn missing(name: &str) -> libbpf_rs::Error {
    std::io::Error::new(
        std::io::ErrorKind::NotFound,
        format!(
            "the object has no {name}: is it one of build/bpf/record_*.bpf.o, of this version?"
        ),
    )
    .into()
}
