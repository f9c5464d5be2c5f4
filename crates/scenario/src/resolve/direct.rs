//! A path that emulates nothing: `path.backend = "veth"` joins the two hosts directly, so keys that would act are refused.

use crate::key::error::ScenarioError;
use knee_path::queue::{BufferLimit, QUEUES};
use knee_path::{Backend, Path};

use super::Resolver;
use crate::cell::FlowSpec;
use crate::keys::Section;

/// A key of a hop, the value with which it does nothing, and whether it acts.
type Key = (&'static str, &'static str, fn(&Path) -> bool);

const KEYS: &[Key] = &[
    ("rate", "\"unlimited\"", |path| path.rate.is_some()),
    ("rtt", "\"0s\"", |path| path.rtt.0 > 0),
    ("loss", "\"0%\"", |path| path.loss.share > 0.0),
    ("ack_loss", "\"0%\"", |path| path.ack_loss.share > 0.0),
    ("buffer", "\"unlimited\"", |path| {
        path.buffer != BufferLimit::Unlimited
    }),
    ("queue", "\"fifo\"", |path| path.queue != QUEUES[0].name),
    ("policer_rate", "\"unlimited\"", |path| {
        path.policer.is_some()
    }),
    ("rtt_change", "no change", |path| {
        !path.rtt_changes.is_empty()
    }),
    ("ack_rate", "\"unlimited\"", |path| path.ack.rate.is_some()),
    ("overhead", "\"0B\"", |path| path.overhead_bytes > 0),
];

impl Resolver<'_> {
    /// Refuses what acts on packets where nothing is between the hosts.
    pub(super) fn check_direct(
        &self,
        hops: &[Path],
        flows: &[FlowSpec],
    ) -> Result<(), ScenarioError> {
        let path = &hops[0];
        if path.backend != Backend::Veth {
            return Ok(());
        }
        if self.matrix.n_hops > 0 {
            let expected = "a back end that has hops: \"auto\" or \"user\"".into();
            let next = "Or give a [path] in the place of the [[hop]] tables.";
            return Err(self.refuse(Section::Whole, "backend", expected, next));
        }
        let refuse = |section, key, nothing: &str| {
            let expected = format!(
                "{nothing}, because path.backend = \"veth\" joins the two hosts directly, with nothing between that emulates a path"
            );
            let next = "Or leave path.backend out.";
            Err(self.refuse(section, key, expected, next))
        };
        let acts = |(key, _, acts): &&Key| {
            // A value that is no good is told already.
            self.value(Section::Path, key);
            acts(path)
        };
        if let Some((key, nothing, _)) = KEYS.iter().find(acts) {
            return refuse(Section::Path, key, nothing);
        }
        if let Some(spec) = path.impairments.iter().next() {
            return refuse(Section::Path, spec.kind.name, "none");
        }
        match flows.iter().position(|flow| flow.rtt.0 > 0) {
            Some(group) => refuse(Section::Flow(group), "rtt", "none"),
            None => Ok(()),
        }
    }
}
