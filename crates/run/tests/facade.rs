//! Text in, tables out: what a page, a script and the native module rely on.

use knee_run::{Options, Run, Scenario, csv, parse, read_cell};
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

fn run(cell: knee_run::Cell, rep: u32) -> Run {
    Run::new(cell, rep, &Options::default()).expect("the simulator can run it")
}

#[test]
fn a_run_in_steps_has_the_tables_of_a_run_in_one_go() {
    for cell in scenario().cells() {
        let whole = run(cell.clone(), 1).to_end(&mut |_| true);
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
fn a_cell_that_was_written_and_read_runs_alike() {
    let scenario = scenario();
    for index in 0..scenario.n_cells() {
        let form = scenario.write_cell(index).expect("there is such a cell");
        let again = read_cell(&form, "cell.json").unwrap_or_else(|error| panic!("{error}"));
        let [one, two] = [scenario.cell(index).expect("as before"), again]
            .map(|cell| format!("{:?}", run(cell, 0).to_end(&mut |_| true)));
        assert_eq!(one, two);
    }
}

#[test]
fn tables_have_a_form_in_text() {
    let output = run(scenario().cell(0).expect("the first"), 0).to_end(&mut |_| true);
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
}
