//! Every op is total: whatever the input, it returns, and leaves a window of at least one segment.

use knee_cc::{ACK_STATE_ECHO, Algorithm, CcIn, CcOut, Instance, Op, algorithms};
use proptest::prelude::*;

/// A word with a liking for the edges.
fn word() -> impl Strategy<Value = u32> {
    prop_oneof![
        Just(0),
        Just(1),
        Just(0x7fff_ffff),
        Just(0x8000_0000),
        Just(u32::MAX),
        0..256u32,
        any::<u32>(),
    ]
}

/// Any memory is a valid `CcIn`: it has integers only.
fn any_input() -> impl Strategy<Value = CcIn> {
    const WORDS: usize = size_of::<CcIn>() / 4;
    proptest::collection::vec(word(), WORDS).prop_map(|words| {
        let mut input = CcIn::default();
        // SAFETY: CcIn is repr(C) of integers, aligned to 8, of WORDS * 4 bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(words.as_ptr(), (&raw mut input).cast::<u32>(), WORDS)
        };
        input
    })
}

fn any_op() -> impl Strategy<Value = Op> {
    proptest::sample::select(&Op::ALL[..])
}

fn any_params(algorithm: &'static Algorithm) -> impl Strategy<Value = Vec<(&'static str, u32)>> {
    let each: Vec<_> = algorithm
        .params()
        .iter()
        .map(|p| (Just(p.name), p.min..=p.max))
        .collect();
    each
}

fn any_instance() -> impl Strategy<Value = Instance> {
    let algorithms: Vec<&'static Algorithm> = algorithms().iter().collect();
    proptest::sample::select(algorithms)
        .prop_flat_map(|a| any_params(a).prop_map(move |params| Instance::new(a, &params).unwrap()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn ops_return_and_leave_a_window(
        mut instance in any_instance(),
        steps in proptest::collection::vec((any_op(), any_input()), 1..60),
    ) {
        for (op, input) in steps {
            let mut out = CcOut {
                pacing_rate: input.pacing_rate,
                pacing_status: input.pacing_status,
                snd_cwnd: input.snd_cwnd.max(1),
                snd_cwnd_cnt: input.snd_cwnd_cnt,
                snd_ssthresh: input.snd_ssthresh,
                app_limited: input.app_limited,
                ecn_echo: input.ack_state & ACK_STATE_ECHO,
                ..CcOut::default()
            };
            let before = input;
            instance.call(op, &input, &mut out);
            prop_assert!(out.snd_cwnd >= 1, "{} {op:?}: window of 0", instance.algorithm().name());
            prop_assert_eq!(input, before, "{} {:?} wrote its input", instance.algorithm().name(), op);
            prop_assert_eq!(instance.info(&input).is_some(), !instance.algorithm().phases().is_empty());
            if op == Op::Ssthresh && instance.has(Op::CongAvoid) {
                prop_assert!(out.ret >= 2, "{}: ssthresh {}", instance.algorithm().name(), out.ret);
            }
        }
    }

    #[test]
    fn the_same_ops_give_the_same_state(
        instance in any_instance(),
        steps in proptest::collection::vec((any_op(), any_input()), 1..60),
    ) {
        let (mut a, mut b) = (instance.clone(), instance);
        for (op, input) in &steps {
            let (mut out_a, mut out_b) = (CcOut::default(), CcOut::default());
            a.call(*op, input, &mut out_a);
            b.call(*op, input, &mut out_b);
            prop_assert_eq!(out_a, out_b);
        }
        prop_assert_eq!(a.state(), b.state());
    }
}
