use knee_units::rng::Stream;

use super::*;

type Processor = Cpu<&'static str>;

fn processor(steal: Option<Steal>, busy: bool, wakeup_preemption: bool) -> Processor {
    Processor::new(Costs::default(), steal, busy, wakeup_preemption, 0)
}

fn softirq(cpu: &mut Processor, now_ns: u64, ns: u64) -> u64 {
    cpu.charge_ns(Cost::TcpSend, ns);
    cpu.run_softirq(now_ns)
}

fn chunk(cpu: &mut Processor, now_ns: u64, number: u32, threads: &mut [Thread], ns: u64) -> u64 {
    cpu.charge_ns(Cost::TcpSend, ns);
    cpu.run_thread(now_ns, number, threads)
}

/// Lets threads that always have work, and softirqs whose next job is there at once, run until then; returns how long each
/// thread and the softirqs ran.
fn share(mut cpu: Processor, threads: u32, softirqs: bool, until_ns: u64) -> (Vec<u64>, u64) {
    let mut list = vec![Thread::default(); threads as usize];
    for number in 0..threads {
        cpu.wake(0, number, &mut list);
    }
    let (mut ran, mut in_softirqs, mut now_ns) = (vec![0; threads as usize], 0, 0);
    while now_ns < until_ns {
        cpu.done(now_ns);
        if softirqs && cpu.softirqs() == 0 {
            cpu.raise("job");
        }
        match cpu.next(now_ns, &mut list) {
            Next::Idle | Next::Busy => break,
            Next::Until(at_ns)
            | Next::Rest {
                until_ns: at_ns, ..
            } => now_ns = at_ns,
            Next::Softirq(_) => {
                in_softirqs += 20_000;
                now_ns = softirq(&mut cpu, now_ns, 20_000);
            }
            Next::Thread { thread, .. } => {
                ran[thread as usize] += 30_000;
                now_ns = chunk(&mut cpu, now_ns, thread, &mut list, 30_000);
            }
        }
    }
    (ran, in_softirqs)
}

#[test]
fn a_softirq_interrupts_a_thread_which_goes_on_with_what_is_left() {
    let mut cpu = processor(None, false, false);
    let mut threads = [Thread::default()];
    cpu.wake(0, 0, &mut threads);
    let first = Next::Thread {
        thread: 0,
        switches: true,
    };
    assert_eq!(cpu.next(0, &mut threads), first);
    assert_eq!(chunk(&mut cpu, 0, 0, &mut threads, 1_000), 1_000);
    assert_eq!(cpu.next(400, &mut threads), Next::Busy);
    cpu.raise("packet");
    assert_eq!(cpu.next(400, &mut threads), Next::Softirq("packet"));
    assert_eq!(softirq(&mut cpu, 400, 250), 650);
    assert_eq!(cpu.next(650, &mut threads), Next::Busy);
    assert_eq!(cpu.done(650), Some(Done::Softirq));
    let rest = Next::Rest {
        thread: 0,
        until_ns: 1_250,
    };
    assert_eq!(cpu.next(650, &mut threads), rest);
    assert_eq!(cpu.done(1_249), None);
    assert_eq!(cpu.done(1_250), Some(Done::Thread(0)));
    let on = Next::Thread {
        thread: 0,
        switches: false,
    };
    assert_eq!(cpu.next(1_250, &mut threads), on);
    cpu.sleep(0);
    assert!(cpu.is_idle());
}

#[test]
fn threads_share_a_processor_evenly() {
    let (ran, _) = share(processor(None, false, false), 3, false, 300_000_000);
    for ran_ns in ran {
        assert!(
            ran_ns.abs_diff(100_000_000) <= SLICE_NS + 30_000,
            "{ran_ns}"
        );
    }
}

#[test]
fn softirqs_without_end_leave_threads_their_share() {
    let (ran, in_softirqs) = share(processor(None, false, false), 1, true, 200_000_000);
    let half = 100_000_000;
    let tolerance = MAX_SOFTIRQ_NS + SLICE_NS + 30_000;
    assert!(ran[0].abs_diff(half) <= tolerance, "{ran:?}");
    assert!(in_softirqs.abs_diff(half) <= tolerance, "{in_softirqs}");
    // Alone they have it all, and ksoftirqd is not needed.
    let (_, in_softirqs) = share(processor(None, false, false), 0, true, 200_000_000);
    assert_eq!(in_softirqs, 200_000_000);
}

#[test]
fn who_runs_keeps_its_slice_unless_a_wake_up_interrupts_it() {
    for wakeup_preemption in [false, true] {
        let mut cpu = processor(None, false, wakeup_preemption);
        let mut threads = [Thread::default(); 2];
        cpu.wake(0, 0, &mut threads);
        assert!(matches!(
            cpu.next(0, &mut threads),
            Next::Thread { thread: 0, .. }
        ));
        chunk(&mut cpu, 0, 0, &mut threads, 1_000);
        cpu.wake(500, 1, &mut threads);
        cpu.done(1_000);
        let second = Next::Thread {
            thread: u32::from(wakeup_preemption),
            switches: wakeup_preemption,
        };
        assert_eq!(cpu.next(1_000, &mut threads), second);
    }
}

#[test]
fn other_work_takes_its_share_and_gives_way_to_who_is_woken() {
    let (ran, _) = share(processor(None, true, false), 1, false, 200_000_000);
    assert!(ran[0].abs_diff(100_000_000) <= 2 * SLICE_NS, "{ran:?}");
    let mut cpu = processor(None, true, true);
    let mut threads = [Thread::default()];
    assert_eq!(cpu.next(0, &mut threads), Next::Until(OTHER_CHUNK_NS));
    cpu.wake(10, 0, &mut threads);
    assert!(matches!(
        cpu.next(10, &mut threads),
        Next::Thread { thread: 0, .. }
    ));
}

#[test]
fn stolen_time_is_nobodys() {
    let steal = || Steal::new(0.5, 1_000_000, Stream::new(1, "steal"), 0);
    let (ran, _) = share(
        processor(Some(steal()), false, false),
        1,
        false,
        1_000_000_000,
    );
    let share = ran[0] as f64 / 1e9;
    assert!((share - 0.5).abs() < 0.02, "{share}");
    let mut cpu = processor(Some(steal()), false, false);
    let begin_ns = (0..10_000_000)
        .step_by(1_000)
        .find(|&now_ns| steal().ends_ns(now_ns).is_some());
    let begin_ns = begin_ns.expect("half of the time is stolen");
    assert_eq!(cpu.next(begin_ns, &mut []), Next::Idle);
    cpu.raise("packet");
    let Next::Until(end_ns) = cpu.next(begin_ns, &mut []) else {
        panic!("it is away");
    };
    assert_eq!(cpu.next(end_ns, &mut []), Next::Softirq("packet"));
}

/// Softirqs interrupt other work and a thread again and again, also while the processor is away: each moment is spent
/// once, whoever has it.
#[test]
fn each_moment_is_spent_once() {
    for wakeup_preemption in [false, true] {
        let mut draws = Stream::new(3, "interrupts");
        let steal = Steal::new(0.3, 40_000, Stream::new(1, "steal"), 0);
        let mut cpu = processor(Some(steal), true, wakeup_preemption);
        let mut threads = [Thread::default()];
        let (mut now_ns, mut free_ns, mut raised, mut runnable) = (0, 0, 0, false);
        while now_ns < 300_000_000 {
            if cpu.done(now_ns) == Some(Done::Thread(0)) {
                cpu.sleep(0);
                runnable = false;
            }
            match cpu.next(now_ns, &mut threads) {
                Next::Idle | Next::Busy => {}
                Next::Until(at_ns)
                | Next::Rest {
                    until_ns: at_ns, ..
                } => free_ns = at_ns,
                Next::Softirq(_) => {
                    raised -= 1;
                    free_ns = softirq(&mut cpu, now_ns, 3_000);
                }
                Next::Thread { .. } => {
                    free_ns = chunk(&mut cpu, now_ns, 0, &mut threads, 30_000);
                }
            }
            let arrives_ns = now_ns + 1 + (draws.next_share() * 50_000.0) as u64;
            if free_ns > now_ns && free_ns <= arrives_ns {
                now_ns = free_ns;
                continue;
            }
            now_ns = arrives_ns;
            if raised == 0 {
                cpu.raise("packet");
                raised = 1;
            }
            if !runnable && draws.next_share() < 0.2 {
                cpu.wake(now_ns, 0, &mut threads);
                runnable = true;
            }
        }
        let spent_ns = cpu.spent().busy_ns() + cpu.spent().other_ns + cpu.spent().steal_ns;
        let (least_ns, most_ns) = (now_ns, now_ns + OTHER_CHUNK_NS + 80_000);
        assert!(
            (least_ns..=most_ns).contains(&spent_ns),
            "{spent_ns} of {now_ns}, {wakeup_preemption}"
        );
        let shares = [
            cpu.spent().busy_ns(),
            cpu.spent().other_ns,
            cpu.spent().steal_ns,
        ];
        assert!(shares.iter().all(|&ns| ns > now_ns / 20), "{shares:?}");
    }
}

#[test]
fn a_bundle_costs_and_counts_as_its_operations_do() {
    let mut costs = Costs::default();
    for position in 0..crate::COSTS.len() {
        costs.set(position, 7.125 * (position + 1) as f64);
    }
    for bundle in Bundle::ALL {
        let mut each = Processor::new(costs.clone(), None, false, false, 0);
        let mut whole = Processor::new(costs.clone(), None, false, false, 0);
        for &cost in bundle.costs() {
            each.charge(cost, 3);
        }
        whole.charge_bundle(bundle, 3);
        assert_eq!(whole.bundled(bundle), 3);
        assert_eq!(whole.run_softirq(10), each.run_softirq(10), "{bundle:?}");
        assert_eq!(whole.spent(), each.spent(), "{bundle:?}");
    }
}

#[test]
fn a_processor_knows_when_nobody_wants_it_but_its_job() {
    let mut cpu = processor(None, false, false);
    let mut threads = [Thread::default(); 2];
    assert_eq!(cpu.begins_thread_at_once(500, 0), Some(500));
    chunk(&mut cpu, 500, 0, &mut threads, 100);
    assert!(cpu.has_only(Some(0)));
    cpu.raise("packet");
    assert!(!cpu.has_only(Some(0)) && cpu.begins_at_once(550).is_none());
    assert_eq!(cpu.next(550, &mut threads), Next::Softirq("packet"));
    softirq(&mut cpu, 550, 10);
    assert!(!cpu.has_only(None), "the thread waits for its rest");
    cpu.done(560);
    cpu.next(560, &mut threads);
    cpu.wake(570, 1, &mut threads);
    assert!(!cpu.has_only(Some(0)));
    cpu.sleep(1);
    assert!(cpu.has_only(Some(0)));
    cpu.done(610);
    assert!(cpu.rests(Some(0)) && cpu.has_only(None));
    assert_eq!(cpu.begins_at_once(700), Some(90));
    let steal = Steal::new(0.5, 1_000, Stream::new(1, "steal"), 0);
    for other in [
        processor(None, true, false),
        processor(Some(steal), false, false),
    ] {
        assert!(!other.has_only(None), "somebody else takes it");
    }
}
