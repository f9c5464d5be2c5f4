//! Walks the registry: whoever adds a workload is enrolled here without a further line.

use knee_scenario::WorkloadSpec;
use knee_scenario::workload::sizes::SizeSpec;
use knee_scenario::workload::web::{ArrivalProcess, Arrivals};
use knee_scenario::workload::{App, WORKLOADS};
use knee_units::Nanos;
use knee_units::files::Files;
use knee_units::rng::Stream;

/// One spec per workload, finite, so that its end can be seen.
fn finite_specs() -> Vec<(WorkloadSpec, u64, u64)> {
    // (spec, bytes toward the receiver, bytes toward the sender); bulk has no end.
    vec![
        (WorkloadSpec::Bulk { write_bytes: 1_000 }, u64::MAX, 0),
        (
            WorkloadSpec::OnOff {
                on: Nanos::from_ms(100),
                off: Nanos::from_ms(100),
                write_bytes: 1_000,
            },
            u64::MAX,
            0,
        ),
        (
            WorkloadSpec::Transfer {
                bytes: 100_003,
                write_bytes: 128,
            },
            100_003,
            0,
        ),
        (
            WorkloadSpec::RequestResponse {
                request_bytes: 44,
                response_bytes: 5_001,
                connections: 1,
                depth: 3,
                requests: Some(17),
            },
            17 * 5_001,
            17 * 44,
        ),
        (
            WorkloadSpec::Web {
                arrivals: Arrivals {
                    gap_ns: 1e6,
                    process: ArrivalProcess::Poisson,
                    sizes: SizeSpec::read("web-search", Files::NONE).expect("a distribution"),
                },
                write_bytes: 4_000,
            },
            23_456,
            0,
        ),
        (
            WorkloadSpec::Programs {
                server: None,
                client: "true".into(),
            },
            0,
            0,
        ),
    ]
}

/// Lets `from` write through a socket that takes odd amounts, and `to` read
/// them; returns the bytes moved.
fn shuttle(from: &mut dyn App, to: &mut dyn App, now: Nanos, rng: &mut Stream) -> u64 {
    let mut moved = 0;
    for _ in 0..50 {
        let wanted = from.next_write_bytes(now);
        if wanted == 0 {
            break;
        }
        let taken = wanted.min(1 + u64::from(rng.next_u32() % 977));
        from.wrote(now, taken);
        to.read(now, taken);
        moved += taken;
    }
    moved
}

#[test]
fn every_workload_moves_the_bytes_it_was_asked_to() {
    let specs = finite_specs();
    for kind in WORKLOADS {
        let (spec, down, up) = specs
            .iter()
            .find(|(spec, ..)| spec.kind().name == kind.name)
            .unwrap_or_else(|| panic!("{}: add a spec of it to this test", kind.name));
        let Some(mut apps) = spec.apps(*down) else {
            assert_eq!(
                kind.name, "programs",
                "the user's own move their bytes themselves"
            );
            continue;
        };
        let mut rng = Stream::new(5, "sockets");
        let (mut moved_down, mut moved_up) = (0, 0);
        let mut latencies = Vec::new();
        for round in 0..2_000 {
            let now = Nanos::from_ms(round);
            moved_up += shuttle(&mut *apps.receiver, &mut *apps.sender, now, &mut rng);
            moved_down += shuttle(&mut *apps.sender, &mut *apps.receiver, now, &mut rng);
            apps.receiver.take_latencies(&mut latencies);
        }
        assert_eq!(moved_up, *up, "{}: toward the sender", kind.name);
        if *down == u64::MAX {
            assert!(moved_down > 1_000_000, "{}: has no end", kind.name);
            assert_eq!(apps.receiver.completed(), None, "{}", kind.name);
        } else {
            assert_eq!(moved_down, *down, "{}: toward the receiver", kind.name);
            assert!(apps.receiver.completed().is_some(), "{}", kind.name);
            assert!(apps.receiver.closes(), "{}: closes when done", kind.name);
        }
        if let WorkloadSpec::RequestResponse { requests, .. } = spec {
            assert_eq!(
                Some(latencies.len() as u64),
                *requests,
                "a latency per answer"
            );
        }
    }
}
