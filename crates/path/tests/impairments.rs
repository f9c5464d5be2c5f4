//! Walks the registry: whoever adds an impairment is enrolled here without a further line.

use knee_path::Transit;
use knee_path::impairment::{Form, IMPAIRMENTS, ImpairmentKind, ImpairmentSpec, Passage, Value};
use knee_path::trace::Outage;
use knee_units::Nanos;
use knee_units::rng::Stream;

const DELAY_NS: u64 = 20_000_000;
const ORIGIN_NS: u64 = 7_000_000;

/// The value that does not act, the least and the most that do, and some between.
fn values(form: Form) -> Vec<Value> {
    match form {
        Form::Time(most) => [Nanos::ZERO, Nanos(1), Nanos::from_ms(3), most]
            .map(Value::Time)
            .into(),
        Form::Share => [0.0, 0.001, 0.03, 0.5, 1.0].map(Value::Share).into(),
        Form::Flag => [false, true].map(Value::Flag).into(),
        Form::Word(_, words) => words().into_iter().map(Value::Word).collect(),
        Form::Outages => {
            let outage = |start, length| Outage {
                start: Nanos::from_ms(start),
                length: Nanos::from_ms(length),
            };
            let lists = [
                vec![],
                vec![outage(0, 1)],
                vec![outage(5, 9), outage(90, 400)],
            ];
            lists.map(|list| Value::Outages(list.into())).into()
        }
    }
}

/// The example of a kind, and that with each value of each key.
fn impairments(kind: &'static ImpairmentKind) -> Vec<ImpairmentSpec> {
    let mut specs = vec![ImpairmentSpec::example(kind)];
    for key in kind.keys {
        specs.extend(values(key.form).into_iter().map(|value| {
            ImpairmentSpec::read(kind, |other| match other.name == key.name {
                true => value.clone(),
                false => other.example.clone(),
            })
        }));
    }
    specs
}

/// When each packet leaves the bottleneck, and what becomes of it. They are 50 us apart.
fn passages(spec: &ImpairmentSpec, packets: u64, seed: u64) -> Vec<(u64, Passage)> {
    let draws = |spec: &ImpairmentSpec| Stream::new(seed, spec.kind.name);
    let mut transit =
        Transit::build(std::iter::once(spec), draws, ORIGIN_NS).expect("there is one");
    // The first come before the run, as in a lab.
    (0..packets)
        .map(|n| n * 50_000)
        .map(|now_ns| (now_ns, transit.pass(now_ns, DELAY_NS)))
        .collect()
}

fn all_that_act() -> impl Iterator<Item = ImpairmentSpec> {
    let all = IMPAIRMENTS.iter().flat_map(|kind| impairments(kind));
    all.filter(ImpairmentSpec::acts)
}

#[test]
fn every_impairment_accounts_for_every_packet_and_sends_none_before_it_came() {
    for spec in all_that_act() {
        for (now_ns, passage) in passages(&spec, 20_000, 5) {
            assert!(passage.copies <= 2, "{spec:?}: {passage:?}");
            assert!(passage.leaves_ns >= now_ns, "{spec:?}: {passage:?}");
        }
    }
}

#[test]
fn every_impairment_of_a_share_touches_that_share() {
    const PACKETS: u64 = 200_000;
    let of_share = |kind: &&&'static ImpairmentKind| matches!(kind.keys[0].form, Form::Share);
    for kind in IMPAIRMENTS.iter().filter(of_share) {
        for share in [0.001, 0.03, 0.5, 1.0] {
            let spec = ImpairmentSpec::new(kind, &[(kind.name, Value::Share(share))]);
            let touched = |&&(now_ns, passage): &&(u64, Passage)| {
                passage.arrives_ns() != now_ns + DELAY_NS || passage.copies != 1
            };
            let passages = passages(&spec, PACKETS, 5);
            let got = passages.iter().filter(touched).count() as f64 / PACKETS as f64;
            // Five standard deviations of independent draws.
            let off = 5.0 * (share * (1.0 - share) / PACKETS as f64).sqrt();
            assert!((got - share).abs() <= off, "{spec:?}: {got}");
        }
    }
}

#[test]
fn every_impairment_does_the_same_twice_and_draws_if_it_says_so() {
    for kind in IMPAIRMENTS {
        let spec = ImpairmentSpec::example(kind);
        let passed = passages(&spec, 20_000, 5);
        assert_eq!(passed, passages(&spec, 20_000, 5), "{}", kind.name);
        let others = passages(&spec, 20_000, 6);
        assert_eq!(passed != others, kind.is_random, "{}", kind.name);
    }
}

#[test]
fn every_impairment_has_a_key_of_its_name_whose_default_does_nothing() {
    for kind in IMPAIRMENTS {
        assert_eq!(kind.keys[0].name, kind.name);
        assert!(!ImpairmentSpec::new(kind, &[]).acts(), "{}", kind.name);
        assert!(ImpairmentSpec::example(kind).acts(), "{}", kind.name);
    }
}
