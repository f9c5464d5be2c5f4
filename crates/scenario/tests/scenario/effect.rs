//! What a file sets for one engine, and another does not do.

use crate::common::{GOOD, edited, names, read};
use knee_scenario::Engine::{self, Guest, Hosts, Kernel, Sim};
use knee_scenario::{describe, keys};

/// The sentences for the first cell of the good file with these lines in it.
fn without_effect(lines: &str, engine: Engine) -> Vec<String> {
    let text = edited("[[flow]]", &format!("{lines}\n[[flow]]"));
    read(&text).unwrap().without_effect(0, engine)
}

#[test]
fn what_simulated_hosts_have_has_no_effect_on_real_ones() {
    let modelled =
        "[sender]\ncosts = \"published\"\nsteal = \"20%\"\nnoise = \"1ms\"\n[receiver]\nhz = 100";
    assert!(without_effect(modelled, Sim).is_empty());
    for engine in [Kernel, Guest, Hosts] {
        let why = format!("in the engine {}, whose hosts are real", engine.name());
        let expected = format!(
            "sender.costs, sender.steal, sender.noise and receiver.hz have no effect {why}"
        );
        assert_eq!(without_effect(modelled, engine), [expected]);
        let one = format!("sender.noise has no effect {why}");
        assert_eq!(without_effect("[sender]\nnoise = \"1ms\"", engine), [one]);
    }
}

#[test]
fn what_real_hosts_have_has_no_effect_on_simulated_ones() {
    let found = without_effect("[receiver]\nthreaded_napi = true", Sim);
    assert_eq!(
        found,
        ["receiver.threaded_napi has no effect in the simulator"]
    );
    let both = "[receiver]\nqueues = 2\napp_cpus = \"0\"\n[sender]\nqueues = 2";
    let expected = [
        "receiver.queues and receiver.app_cpus have no effect in the simulator without receiver.costs",
        "sender.queues has no effect in the simulator without sender.costs",
    ];
    assert_eq!(without_effect(both, Sim), expected);
    assert!(without_effect(both, Kernel).is_empty());
    let known = "[receiver]\nqueues = 2\ncosts = [\"none\", \"published\"]";
    assert!(
        without_effect(known, Sim).is_empty(),
        "the file says what it does without"
    );
}

/// Two hosts of the user's may be set so, and a lab is not.
#[test]
fn what_hosts_of_the_users_may_be_set_to_is_no_model_alone() {
    let set = "[receiver]\nnetdev_budget = 600\ntso = false";
    assert!(without_effect(set, Hosts).is_empty());
    let found = without_effect(set, Kernel);
    assert!(found[0].starts_with("receiver.netdev_budget and receiver.tso have no effect"));
}

/// However they are written.
#[test]
fn a_key_that_says_its_default_has_no_effect_to_miss() {
    let defaults = "[sender]\ncosts = \"none\"\nnoise = \"0ms\"\nsteal = \"0.0%\"\nhz = 250\n[receiver]\nthreaded_napi = false";
    for engine in Engine::ALL {
        assert!(without_effect(defaults, engine).is_empty(), "{engine:?}");
    }
}

/// Of what a file need not say, nothing is missed.
#[test]
fn a_default_that_the_release_has_is_not_set_by_the_file() {
    let text = format!("kernel = \"4.8\"\n{GOOD}");
    let scenario = read(&text).unwrap();
    let facts = describe(&scenario.cell(0).unwrap(), &names());
    let share = facts
        .iter()
        .find(|(key, ..)| key == "receiver.rcvbuf_share");
    assert_ne!(share.unwrap().1, "measured", "it is another's");
    assert!(scenario.without_effect(0, Guest).is_empty());
}

#[test]
fn each_key_says_the_engines_that_have_it() {
    let engines = |path: &str| {
        let key = keys().into_iter().find(|key| key.path == path);
        key.unwrap_or_else(|| panic!("{path} is a key")).engines
    };
    assert_eq!(engines("path.rate"), "sim, kernel, guest");
    assert_eq!(engines("flow.sndbuf"), "sim, kernel, guest, hosts");
    assert_eq!(engines("flow.blocking"), "sim");
    assert_eq!(engines("sender.steal"), "sim with costs");
    assert_eq!(
        engines("receiver.rps_cpus"),
        "kernel, guest, sim with costs"
    );
    assert_eq!(engines("sender.qdisc"), "kernel, guest");
    assert_eq!(engines("kernel"), "sim, guest");
}
