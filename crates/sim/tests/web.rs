//! Workload web: transfers that come and go, in the simulator.

use crate::common::{assert_within, cell, run, run_cell};

/// A web source on an idle link, and whatever stands before it.
fn text(before: &str, web: &str) -> String {
    format!(
        "duration = \"60s\"\n[path]\nrate = \"50Mbit/s\"\nrtt = \"40ms\"\n{before}\n\
         [[flow]]\nalgorithm = \"cubic\"\nname = \"web\"\nworkload = \"web\"\n{web}"
    )
}

#[test]
fn every_transfer_is_a_row_with_its_own_size_and_completion_time() {
    let cell = cell(&text("", "load = \"10Mbit/s\""));
    let transfers = cell.connections(0);
    let output = run_cell(&cell, 0, false);
    let flows = &output.flows;
    // 10 Mbit/s of 10.6 kB on the average: 118 a second, off by their root.
    assert_within("transfers", transfers.len() as f64, 6_800.0, 7_350.0);
    assert_eq!(flows.flow.len(), transfers.len());
    let mut complete = 0;
    for (row, transfer) in transfers.iter().enumerate() {
        assert_eq!(flows.start_ns[row] as u64, transfer.open.0);
        assert_eq!(flows.transfer_bytes.get(row), Some(transfer.bytes as i64));
        if let Some(completion_us) = flows.completion_us.get(row) {
            complete += 1;
            assert_eq!(flows.bytes_read[row] as u64, transfer.bytes);
            // A handshake and half a round trip are the least, whatever the size.
            assert!(completion_us >= 60_000, "{row}: {completion_us}");
            assert!(flows.slowdown.get(row) >= Some(1.0), "{row}");
        } else {
            assert_eq!(flows.slowdown.get(row), None, "{row}");
        }
    }
    assert!(complete * 100 >= transfers.len() * 99, "{complete}");
}

#[test]
fn small_transfer_takes_a_handshake_and_half_a_round_trip() {
    // Ten segments of the initial window: 3 ms on the wire at 50 Mbit/s.
    let output = run(&text(
        "",
        "arrivals = \"1/s\"\narrival_process = \"regular\"\nsizes = \"pareto from 10000B to 10001B\"",
    ));
    for completion_us in output.flows.completion_us.iter().flatten() {
        assert_within("completion, ms", completion_us as f64 / 1e3, 60.0, 64.0);
    }
    // Alone, and within the initial window: only the SYNs' 10 us each are not reckoned with.
    for slowdown in output.flows.slowdown.iter().flatten() {
        assert_within("slowdown", slowdown, 1.0, 1.001);
    }
}

#[test]
fn means_of_a_transfer_end_with_it_before_and_after_the_warm_up() {
    // Seven segments, and an initial window of ten: it can double while they are acked.
    let web = "arrivals = \"1/s\"\narrival_process = \"regular\"\nsizes = \"pareto from 10000B to 10001B\"";
    let text = format!("warmup = \"30s\"\n{}", text("", web));
    let flows = run(&text).flows;
    assert!(flows.completion_us.iter().flatten().count() > 50);
    for (cwnd, inflight) in
        (flows.snd_cwnd_mean.iter().flatten()).zip(flows.inflight_mean.iter().flatten())
    {
        assert_within("mean window", cwnd, 10.0, 20.0);
        assert_within("mean in flight", inflight, 1.0, 7.0);
    }
}

#[test]
fn slowdown_counts_the_round_trips_that_slow_start_takes() {
    // 100 segments of 1448 B are 10 + 20 + 40 + 30: three round trips more than the
    // least, which is 60 ms and 100 packets of 12 us at 1 Gbit/s.
    let text = text(
        "",
        "arrivals = \"1/s\"\narrival_process = \"regular\"\nsizes = \"pareto from 144800B to 144801B\"",
    );
    let output = run(&text.replace("50Mbit/s", "1Gbit/s"));
    let least_ms = 60.0 + 100.0 * 0.012;
    for slowdown in output.flows.slowdown.iter().flatten() {
        assert_within("slowdown", slowdown * least_ms, 180.0, 183.0);
    }
    assert!(output.flows.slowdown.iter().flatten().count() > 50);
}

#[test]
fn slowdown_is_null_where_the_path_has_no_constant_least() {
    let changing = |text: String| {
        let flows = run(&text).flows;
        assert!(flows.completion_us.iter().flatten().count() > 50);
        flows.slowdown.iter().flatten().count()
    };
    let web = text("", "arrivals = \"2/s\"");
    assert_eq!(
        changing(web.replace("\"50Mbit/s\"", "\"trace cellular\"")),
        0
    );
    let bulk = run(&text("", "arrivals = \"2/s\"").replace("\"web\"\narr", "\"bulk\"\n#"));
    assert!(bulk.flows.transfer_bytes.iter().eq([None]));
    assert!(bulk.flows.slowdown.iter().eq([None]));
}

#[test]
fn link_carries_the_load_that_is_asked() {
    let cell = cell(&text("", "load = \"20Mbit/s\"\nsizes = \"lognormal\""));
    let asked: u64 = cell.connections(0).iter().map(|c| c.bytes).sum();
    let read: i64 = run_cell(&cell, 0, false).flows.bytes_read.iter().sum();
    // What came in the last moments is under way at the end.
    assert_within("carried of asked", read as f64 / asked as f64, 0.99, 1.0);
    // 13,600 transfers: 2.5 / sqrt(13,600) = 2.1 % is one standard deviation.
    let mbit = asked as f64 * 8.0 / 60.0 / 1e6;
    assert_within("asked, Mbit/s", mbit, 18.9, 21.1);
}

#[test]
fn adding_web_traffic_changes_no_draw_of_others() {
    let other = "loss = \"1%\"\n[[flow]]\nalgorithm = \"reno\"\nworkload = \"web\"\narrivals = \"20/s\"\nstart = \"1s\"";
    let with = cell(&text(other, "arrivals = \"5/s\""));
    let mut alone = with.clone();
    alone.flows.truncate(1);
    let (few, many) = (alone.connections(3), with.connections(3));
    assert_eq!(few[..], many[..few.len()]);
    assert!(many.len() > few.len());
    assert_ne!(alone.connections(2), few, "repetitions draw their own");
}

#[test]
fn flows_that_stay_keep_their_numbers_in_every_repetition() {
    let after = "arrivals = \"5/s\"\n[[flow]]\nalgorithm = \"reno\"\ncount = 2";
    let cell = cell(&text("", after));
    for rep in 0..3 {
        let groups: Vec<usize> = cell.connections(rep).iter().map(|c| c.group).collect();
        assert_eq!(groups[..3], [1, 1, 0]);
    }
}

#[test]
fn repetitions_of_cells_with_the_same_seed_meet_the_same_transfers() {
    let of = |algorithm: &str| {
        let text = text("", "load = \"5Mbit/s\"").replace("cubic", algorithm);
        cell(&text).connections(4)
    };
    assert_eq!(of("cubic"), of("bbr1"));
}
