use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use knee_cc::{CcIn, CcOut, Op, find};

use super::*;

/// The recordings that come with the tests: the kernel's own algorithms on lossy, slow paths, one flow each.
fn recordings() -> Vec<PathBuf> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/kernel/recordings");
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap_or_else(|e| panic!("{folder}: {e}"))
        .map(|entry| entry.unwrap().path())
        .collect();
    found.sort();
    found
}

fn records_of(path: &PathBuf) -> (String, Vec<OpRecord>) {
    let reader = Reader::new(BufReader::new(File::open(path).unwrap())).unwrap();
    let algorithm = reader.algorithm().to_owned();
    (algorithm, reader.collect::<Result<_, _>>().unwrap())
}

fn replayed(algorithm: &str, records: &[OpRecord]) -> Report {
    let mut replay = Replay::new(find(algorithm).unwrap());
    records.iter().for_each(|record| replay.feed(record));
    replay.finish()
}

fn cubic_recording() -> Vec<OpRecord> {
    let path = recordings()
        .into_iter()
        .find(|path| path.ends_with("cubic-bulk.rec"))
        .unwrap();
    records_of(&path).1
}

#[test]
fn our_algorithms_do_what_the_kernels_own_did() {
    let mut acks = std::collections::BTreeMap::new();
    for path in recordings() {
        let (algorithm, records) = records_of(&path);
        let report = replayed(&algorithm, &records);
        println!("{}\n{report}", path.display());
        assert_eq!(report.cut_flows, 0);
        assert_eq!(report.differences(Cause::Unexplained), 0, "{report}");
        assert!(report.equal_share(Field::SndCwnd) >= 0.99, "{report}");
        *acks.entry(algorithm).or_insert(0) += report.acks;
    }
    for algorithm in ["reno", "cubic", "bbr1"] {
        assert!(acks.get(algorithm) > Some(&1000), "{algorithm}: {acks:?}");
    }
}

/// Without this a recording could agree because nothing ever happened in it.
#[test]
fn the_recordings_hold_losses_and_a_moving_window() {
    for path in recordings() {
        let (_, records) = records_of(&path);
        let losses = records
            .iter()
            .filter(|r| r.op() == Some(Op::Ssthresh))
            .count();
        let windows: std::collections::BTreeSet<u32> =
            records.iter().map(|r| r.out.snd_cwnd).collect();
        assert!(losses >= 3, "{}: {losses} losses", path.display());
        assert!(windows.len() >= 10, "{}: {windows:?}", path.display());
    }
}

#[test]
fn a_recording_is_read_as_it_was_written() {
    for path in recordings() {
        let (algorithm, records) = records_of(&path);
        let mut writer = Writer::new(Vec::new(), &algorithm, "6.18").unwrap();
        for record in &records {
            writer.write(record).unwrap();
        }
        let bytes = writer.finish().unwrap();
        let reader = Reader::new(bytes.as_slice()).unwrap();
        assert_eq!(reader.release(), "6.18");
        let again: Vec<OpRecord> = reader.collect::<Result<_, _>>().unwrap();
        assert!(again == records, "{}", path.display());
    }
}

/// Flows in turns, gaps, and values at the ends of their ranges.
#[test]
fn any_record_survives_the_file() {
    let mut random = 1u64;
    let mut draw = || {
        random = random
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        random >> 16
    };
    let records: Vec<OpRecord> = (0..1000u32)
        .map(|i| OpRecord {
            flow: draw() % 5 + 1,
            number: i * 3,
            raw_op: (draw() % 11) as u32,
            input: CcIn {
                now_us: draw() << 20,
                pacing_rate: if i % 7 == 0 { u64::MAX } else { draw() },
                snd_cwnd: draw() as u32,
                rs_interval_us: -1,
                ..CcIn::default()
            },
            out: CcOut {
                pacing_rate: draw(),
                snd_cwnd: draw() as u32 % 3,
                ret: u32::MAX,
                ..CcOut::default()
            },
            kernel_k: draw() as u32,
            ..OpRecord::default()
        })
        .collect();
    let mut writer = Writer::new(Vec::new(), "reno", "6.18").unwrap();
    for record in &records {
        writer.write(record).unwrap();
    }
    let bytes = writer.finish().unwrap();
    let again: Vec<OpRecord> = Reader::new(bytes.as_slice())
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert!(again == records);
}

#[test]
fn a_damaged_recording_is_refused_and_never_panics() {
    let other = Reader::new(b"PAR1 not a recording".as_slice());
    let said = other.err().unwrap().to_string();
    assert!(said.contains("tcpknee-recording 3"), "{said}");

    let path = &recordings()[0];
    let whole = std::fs::read(path).unwrap();
    let cut_short = &whole[..whole.len() - 1];
    let last = Reader::new(cut_short).unwrap().last().unwrap();
    assert_eq!(
        last.err().unwrap().kind(),
        std::io::ErrorKind::UnexpectedEof
    );

    for at in (40..whole.len()).step_by(97) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0xff;
        let (mut replay, reader) = (
            Replay::new(find("bbr1").unwrap()),
            Reader::new(damaged.as_slice()).unwrap(),
        );
        for record in reader.map_while(Result::ok) {
            replay.feed(&record);
        }
    }
}

#[test]
fn a_flow_is_compared_up_to_its_first_lost_record() {
    let mut records = cubic_recording();
    let total = records.len() as u64;
    records.remove(500);
    let report = replayed("cubic", &records);
    assert_eq!(report.ops, 500);
    assert_eq!(report.cut_flows, 1);
    assert_eq!(report.skipped, total - 501);
    assert_eq!(report.differences(Cause::Unexplained), 0);
}

#[test]
fn a_difference_is_told_with_both_values() {
    let mut records = cubic_recording();
    let at = records.iter().position(OpRecord::is_ack).unwrap();
    let honest = records[at].out.snd_cwnd;
    records[at].out.snd_cwnd += 1;
    let report = replayed("cubic", &records);
    let (count, first) = report.kinds().next().unwrap();
    assert_eq!(count, 1);
    assert_eq!((first.op, first.field), (Op::CongAvoid, Field::SndCwnd));
    assert_eq!(first.cause, Cause::Unexplained);
    assert_eq!(
        (first.kernels, first.ours),
        (u64::from(honest) + 1, honest.into())
    );
    assert_eq!(report.equal[Field::SndCwnd as usize], report.acks - 1);
    assert!(
        report
            .to_string()
            .contains("1 x CongAvoid snd_cwnd (unexplained)")
    );
}

/// Just after the kernel took another K any difference is put down to the root; but not where no root gives that K.
#[test]
fn a_k_that_is_too_far_off_explains_nothing() {
    let mut records = cubic_recording();
    let at = records
        .iter()
        .position(|record| record.is_ack() && record.kernel_k > 500)
        .unwrap();
    records[at].kernel_k += records[at].kernel_k / 100;
    records[at].out.snd_cwnd += 1;
    let report = replayed("cubic", &records);
    assert_eq!(report.differences(Cause::Unexplained), 1, "{report}");
}

/// cubic is replayed as reno: they share slow start, and part at the first loss.
#[test]
fn another_algorithm_is_told_from_the_one_recorded() {
    let report = replayed("reno", &cubic_recording());
    assert!(report.differences(Cause::Unexplained) > 100, "{report}");
}
