//! A simulated connection as an environment for learners: it runs to the next decision, tells what can be seen then, what the
//! step was worth, and what is true.

mod controls;
mod fields;
mod rewards;

use std::sync::Arc;

use knee_scenario::{Cell, Scenario};
use knee_sim::{Decisions, Options, Sight, SimError, Steered, Truth, World};

pub use controls::{CONTROLS, Control};
pub use fields::{FIELDS, Field};
pub use rewards::{REWARDS, Reward};

use controls::Meant;
use rewards::Step;

/// What is to be learnt.
pub struct Task {
    pub scenario: Scenario,
    /// Index of the agent's `[[flow]]`.
    pub group: usize,
    pub decisions: Decisions,
    pub fields: Vec<&'static Field>,
    /// With the user's bounds.
    pub controls: Vec<Control>,
    pub reward: &'static Reward,
    /// Are observations from 0 to 1 ([`Field::scaled`])?
    pub scaled: bool,
}

/// Rows of an episode, which nobody reads; from so many on they are dropped.
const MOST_ROWS: usize = 1 << 12;

/// How an episode goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    No,
    /// The connection has carried all that it was to carry.
    Complete,
    /// The scenario's duration is over.
    OutOfTime,
}

/// Names and units of what is true, in the order of [`Told::truth`].
pub const TRUTH: [(&str, &str, &str); 7] = [
    ("time_s", "s", "simulated time since the run began"),
    ("queue_bytes", "bytes", "waiting at the bottleneck"),
    ("queue_delay_us", "us", "how long those take to leave"),
    (
        "capacity_bits_per_sec",
        "bit/s",
        "what the bottleneck could have carried in this step; NaN: no time passed, or no hop has a rate",
    ),
    (
        "base_rtt_us",
        "us",
        "the agent's RTT without queue, as the scenario begins",
    ),
    (
        "goodput_bits_per_sec",
        "bit/s",
        "payload of the agent that was acknowledged in this step",
    ),
    (
        "others_goodput_bits_per_sec",
        "bit/s",
        "payload that all other flows' receivers read in this step",
    ),
];

/// What a step came to, besides the observation.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    pub reward: f64,
    pub ended: Ended,
    pub truth: [f64; TRUTH.len()],
}

/// One episode after the other.
pub struct Env {
    task: Arc<Task>,
    episode: Option<Episode>,
}

struct Episode {
    world: World,
    meant: Meant,
    /// The hop with the least rate of those that the agent's flow crosses; `None`: none has a rate.
    bottleneck: Option<usize>,
    base_rtt_us: f64,
    /// As of the last decision.
    sight: Sight,
    truth: Truth,
    rtt_us: f64,
}

impl Env {
    pub fn new(task: Arc<Task>) -> Env {
        Env {
            task,
            episode: None,
        }
    }

    /// Begins an episode in that cell with that seed, which runs to its first decision. Fills `seen`.
    ///
    /// # Errors
    /// The simulator cannot run the cell, or its flow does not open while it lasts.
    ///
    /// # Panics
    /// There is no such cell.
    pub fn reset(&mut self, cell: usize, seed: u64, seen: &mut [f32]) -> Result<Told, SimError> {
        self.episode = None;
        let cell = self.task.scenario.cell(cell).expect("there is such a cell");
        let episode = Episode::new(Cell { seed, ..cell }, &self.task)?;
        self.task.show(&episode.sight, seen);
        let told = Told {
            reward: 0.0,
            ended: Ended::No,
            truth: episode.told(&Step::default()),
        };
        self.episode = Some(episode);
        Ok(told)
    }

    /// The agent decides, and the world goes on to its next decision or its end. Fills `seen`. After the end nothing goes on.
    ///
    /// # Panics
    /// No episode was begun.
    pub fn step(&mut self, values: &[f64], seen: &mut [f32]) -> Told {
        let task = &*self.task;
        let episode = self.episode.as_mut().expect("an episode was begun");
        let (step, ended) = episode.step(task, values);
        task.show(&episode.sight, seen);
        Told {
            reward: (task.reward.value)(&step),
            ended,
            truth: episode.told(&step),
        }
    }
}

impl Task {
    fn show(&self, sight: &Sight, seen: &mut [f32]) {
        for (place, field) in seen.iter_mut().zip(&self.fields) {
            let value = field.value(sight);
            *place = match self.scaled {
                true => field.scaled(value),
                false => value,
            } as f32;
        }
    }
}

/// The hop with the least rate of those that a flow of a cell crosses, the first of those alike.
pub fn bottleneck(cell: &Cell, group: usize) -> Option<usize> {
    let crossed = cell.flows[group].hops.clone();
    let rates = cell.hops().enumerate().filter(|(n, _)| crossed.contains(n));
    let rates = rates.filter_map(|(n, hop)| Some((hop.rate?.bits_per_sec(), n)));
    rates.min().map(|(_, n)| n)
}

impl Episode {
    fn new(cell: Cell, task: &Task) -> Result<Episode, SimError> {
        let spec = &cell.flows[task.group];
        let (bottleneck, base_rtt_us) = (bottleneck(&cell, task.group), spec.rtt.0 as f64 / 1e3);
        let name = spec.name.clone();
        if task.reward.needs_rate && bottleneck.is_none() {
            let what = format!(
                "flow \"{name}\" crosses no hop with a rate, and the reward {} is a share of it; expected a path.rate, or \
                 another reward",
                task.reward.name
            );
            return Err(SimError::NoSeat { what });
        }
        let options = Options {
            keep_connections: true,
            agent: Some(Steered {
                group: task.group,
                decisions: task.decisions,
            }),
            ..Options::default()
        };
        let mut world = World::new(Arc::new(cell), 0, &options)?;
        let opens = world.next_decision();
        let Some(sight) = world.sight().filter(|_| opens) else {
            let what = format!(
                "flow \"{name}\" does not open while the scenario lasts; expected a longer duration, or an earlier start"
            );
            return Err(SimError::NoSeat { what });
        };
        let truth = world.truth();
        Ok(Episode {
            world,
            meant: Meant::default(),
            bottleneck,
            base_rtt_us,
            rtt_us: sight.cc.srtt_us.into(),
            sight,
            truth,
        })
    }

    fn step(&mut self, task: &Task, values: &[f64]) -> (Step, Ended) {
        let answer = self.meant.answer(&task.controls, values, &self.sight);
        self.world.decide(answer);
        let goes_on = self.world.next_decision();
        if self.world.rows().count() >= MOST_ROWS {
            self.world.rows().clear();
        }
        let sight = self.world.sight().expect("its connection is kept");
        let truth = self.world.truth();
        let step = self.measure(&sight, &truth);
        (self.sight, self.truth, self.rtt_us) = (sight, truth, step.rtt_us);
        let ended = match () {
            _ if self.sight.is_complete => Ended::Complete,
            _ if goes_on => Ended::No,
            _ => Ended::OutOfTime,
        };
        (step, ended)
    }

    /// What happened from the last decision to that sight.
    fn measure(&self, sight: &Sight, truth: &Truth) -> Step {
        let seconds = sight.step.0 as f64 / 1e9;
        let per_sec = |amount: f64| if seconds > 0.0 { amount / seconds } else { 0.0 };
        let since = &sight.since;
        let (delivered, lost) = (f64::from(since.delivered), f64::from(since.lost));
        let rtt_us = match since.rtts {
            0 => f64::from(sight.cc.srtt_us),
            rtts => since.rtt_sum_us as f64 / f64::from(rtts),
        };
        let offered = |truth: &Truth| truth.queues[self.bottleneck?].offered_bytes;
        let capacity = offered(truth).zip(offered(&self.truth));
        let capacity = capacity.map_or(0.0, |(now, before)| per_sec((now - before) as f64 * 8.0));
        let others = (truth.others_read_bytes - self.truth.others_read_bytes) as f64;
        Step {
            seconds,
            goodput_bits_per_sec: per_sec(since.acked_bytes as f64 * 8.0),
            delivered_per_sec: per_sec(delivered),
            capacity_bits_per_sec: capacity,
            loss: if lost > 0.0 {
                lost / (lost + delivered)
            } else {
                0.0
            },
            rtt_us,
            rtt_slope: per_sec((rtt_us - self.rtt_us) / 1e6),
            base_rtt_us: self.base_rtt_us,
            others_goodput_bits_per_sec: per_sec(others * 8.0),
            others: truth.others.into(),
        }
    }

    fn told(&self, step: &Step) -> [f64; TRUTH.len()] {
        let queue = self.bottleneck.map(|hop| &self.truth.queues[hop]);
        let capacity = match step.capacity_bits_per_sec {
            0.0 => f64::NAN,
            rate => rate,
        };
        [
            self.sight.t.0 as f64 / 1e9,
            queue.map_or(0.0, |queue| queue.queue_bytes as f64),
            queue.map_or(0.0, |queue| queue.queue_delay_us as f64),
            capacity,
            self.base_rtt_us,
            step.goodput_bits_per_sec,
            step.others_goodput_bits_per_sec,
        ]
    }
}
