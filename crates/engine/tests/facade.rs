//! Text in, tables out: what a page, a script and the native module rely on.

use knee_engine::{
    Answer, Decisions, Options, Rows, Run, Scenario, Steered, csv, names, parse, read_cell,
};
use knee_tables::{Samples, Table};
use knee_units::Nanos;

const TEXT: &str = r#"
duration = "2s"
[path]
rate = "20Mbit/s"
rtt  = "40ms"
loss = ["0%", "1%"]
[[flow]]
algorithm = ["cubic", "bbr1"]
"#;

fn scenario() -> Scenario {
    parse(TEXT, "facade.toml", None).unwrap_or_else(|error| panic!("{error}"))
}

fn run(cell: knee_engine::Cell, rep: u32) -> Run {
    Run::new(cell, rep, &Options::default()).expect("the simulator can run it")
}

#[test]
fn a_run_in_steps_has_the_tables_of_a_run_in_one_go() {
    for cell in scenario().cells() {
        let whole = run(cell.clone(), 1).to_end(&mut |_, _| true);
        let mut stepped = run(cell, 1);
        let mut shown = Vec::new();
        while stepped.step(stepped.now() + Nanos::from_ms(130)) {
            shown.push(stepped.now());
        }
        let stepped = stepped.finish();
        assert_eq!(shown.len(), 15);
        assert_eq!(format!("{whole:?}"), format!("{stepped:?}"));
    }
}

#[test]
fn rows_that_are_taken_while_it_runs_are_those_of_a_run_that_keeps_them() {
    // Long enough to be looked at several times.
    let text = TEXT
        .replace("\"2s\"", "\"10s\"")
        .replace("20Mbit/s", "200Mbit/s");
    let text = format!("{text}\n[receiver]\ncosts = \"published\"\n");
    let scenario = parse(&text, "facade.toml", None).unwrap_or_else(|error| panic!("{error}"));
    for cell in [0, 1].map(|index| scenario.cell(index).expect("there are four")) {
        let whole = run(cell.clone(), 1).to_end(&mut |_, _| true);
        let whole = Rows {
            flows: whole.flows,
            samples: whole.samples,
            queue: whole.queue,
            events: whole.events,
            cpu: whole.cpu,
            host_costs: whole.host_costs,
        };
        let texts = |rows: &Rows| {
            let tables = [
                csv(&rows.samples),
                csv(&rows.queue),
                csv(&rows.events),
                csv(&rows.cpu),
            ];
            tables.map(|text| text.split_once('\n').expect("a head").1.to_owned())
        };
        // However many there are, from some on they are taken.
        for least in [0, 1, 100] {
            let (mut taken, mut times) = ([const { String::new() }; 4], 0);
            let mut add = |rows: &Rows| {
                for (all, some) in taken.iter_mut().zip(texts(rows)) {
                    all.push_str(&some);
                }
            };
            let rest = run(cell.clone(), 1).to_end(&mut |_, rows| {
                if rows.samples.rows() >= least {
                    add(&std::mem::take(rows));
                    times += 1;
                }
                true
            });
            let rest = Rows {
                flows: rest.flows,
                samples: rest.samples,
                queue: rest.queue,
                events: rest.events,
                cpu: rest.cpu,
                host_costs: rest.host_costs,
            };
            add(&rest);
            assert_eq!(taken, texts(&whole));
            assert_eq!(csv(&rest.flows), csv(&whole.flows));
            assert!(times > 2, "taken {times} times");
        }
    }
}

/// The first cell, after the last decision for its first flow.
fn steered(text: &str, every: Nanos, snd_cwnd: Option<u32>) -> Run {
    let scenario = parse(text, "facade.toml", None).unwrap_or_else(|error| panic!("{error}"));
    let options = Options {
        agent: Some(Steered {
            group: 0,
            decisions: Decisions::Every(every),
        }),
        ..Options::default()
    };
    let cell = scenario.cell(0).expect("there is one");
    let mut run = Run::new(cell, 0, &options).expect("the simulator can run it");
    while run.next_decision() {
        run.decide(Answer {
            snd_cwnd,
            pacing_rate: None,
        });
    }
    run
}

#[test]
fn a_steered_run_keeps_every_row_that_nobody_took() {
    let text = TEXT.replace("\"2s\"", "\"5s\"\nsample_interval = \"1ms\"");
    let run = steered(&text, Nanos::from_ms(10), Some(20));
    // One each millisecond, the last at the end.
    assert_eq!(run.finish().queue.rows(), 5000);
}

#[test]
fn an_agent_has_nothing_to_decide_once_its_connection_is_over() {
    let flows = "algorithm = \"reno\"\nworkload = \"transfer\"\nbytes = \"10kB\"\n[[flow]]\nalgorithm = \"cubic\"";
    let path = "[path]\nrate = \"20Mbit/s\"\nrtt = \"40ms\"";
    let text = format!("duration = \"20s\"\n{path}\n[[flow]]\n{flows}\n");
    let mut run = steered(&text, Nanos::from_secs(5), None);
    // A handshake, 10 kB and what closes it; the other flow goes on.
    assert!(run.now() < Nanos::from_ms(300), "{}", run.now());
    assert!(run.step(Nanos::from_secs(10)));
}

#[test]
fn columns_that_are_not_kept_stay_empty_and_change_no_others() {
    let kept = |samples: &str| {
        let scenario = parse(&format!("{samples}\n{TEXT}"), "facade.toml", None);
        let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
        run(scenario.cell(3).expect("the last"), 0).to_end(&mut |_, _| true)
    };
    let (all, two, none) = (
        kept(""),
        kept("samples = [\"srtt_us\", \"cc_phase\"]"),
        kept("samples = []"),
    );
    assert!(all.samples.rows() > 100);
    for ((column, of_all), of_two) in (Samples::COLUMNS.iter())
        .zip(all.samples.values())
        .zip(two.samples.values())
    {
        match column.name {
            "cell" | "rep" | "t_ns" | "flow" | "srtt_us" | "cc_phase" => {
                assert_eq!(format!("{of_all:?}"), format!("{of_two:?}"));
            }
            name => assert_eq!(of_two.len(), 0, "{name}"),
        }
    }
    let text = csv(&two.samples);
    assert!(
        text.starts_with("cell,rep,t_ns,flow,srtt_us,cc_phase\n3,0,"),
        "{text}"
    );
    assert_eq!(none.samples.rows(), 0);
    for other in [&two, &none] {
        assert_eq!(csv(&all.flows), csv(&other.flows));
        assert_eq!(csv(&all.queue), csv(&other.queue));
        assert_eq!(csv(&all.events), csv(&other.events));
    }
}

#[test]
fn a_cell_that_was_written_and_read_runs_alike() {
    let scenario = scenario();
    for index in 0..scenario.n_cells() {
        let form = scenario.write_cell(index).expect("there is such a cell");
        let again =
            read_cell(&form, "cell.json", &names(None)).unwrap_or_else(|error| panic!("{error}"));
        let [one, two] = [scenario.cell(index).expect("as before"), again]
            .map(|cell| format!("{:?}", run(cell, 0).to_end(&mut |_, _| true)));
        assert_eq!(one, two);
    }
}

#[test]
fn tables_have_a_form_in_text() {
    let output = run(scenario().cell(0).expect("the first"), 0).to_end(&mut |_, _| true);
    let flows = csv(&output.flows);
    let lines: Vec<&str> = flows.lines().collect();
    assert_eq!(lines.len(), 2, "a head and a flow");
    let columns = lines[0].split(',').count();
    assert_eq!(lines[1].split(',').count(), columns, "{flows}");
    assert!(lines[1].contains("\"cubic\""));
}

#[test]
fn what_is_wrong_is_said() {
    let error = parse("duration = 3", "page", None).unwrap_err().to_string();
    assert!(
        error.contains("page:1: duration: got the bare number 3"),
        "{error}"
    );
    let programs = TEXT.replace(
        "[\"cubic\", \"bbr1\"]",
        "\"cubic\"\nworkload = \"programs\"\nclient = \"true\"",
    );
    let cell = parse(&programs, "page", None).unwrap().cell(0).unwrap();
    let refused = Run::new(cell, 0, &Options::default()).err().unwrap();
    assert!(refused.to_string().contains("only a lab can"), "{refused}");
    let kernels = format!("samples = [\"srtt_us\", \"rcv_rtt_us\"]\n{TEXT}");
    let cell = parse(&kernels, "page", None).unwrap().cell(0).unwrap();
    let refused = Run::new(cell, 0, &Options::default()).err().unwrap();
    let expected =
        "samples = [..., \"rcv_rtt_us\"] names what real kernels tell, which only a lab can";
    assert!(refused.to_string().starts_with(expected), "{refused}");
}
