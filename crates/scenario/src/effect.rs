//! What a file sets without an effect: its keys are of another engine, or of hosts that have a cost model.

use std::collections::BTreeMap;

use crate::Scenario;
use crate::key::profile;
use crate::key::{Default, Engine, Key, Simulated};
use crate::read::{Entry, Target};

impl Scenario {
    /// A sentence for each reason why something that the file sets for a cell has no effect in the engine; a key that
    /// stands at its default has none to miss. `index`: the cell's. Empty for nearly every cell.
    pub fn without_effect(&self, index: usize, engine: Engine) -> Vec<String> {
        let Some(point) = self.source.matrix.point(index) else {
            return Vec::new();
        };
        let (mut absent, mut unmodelled) = (Vec::new(), BTreeMap::<String, Vec<&str>>::new());
        for (setting, entry) in point.set() {
            let Target::Key(key) = setting.target else {
                continue;
            };
            let (engines, section) = (key.engines, setting.section);
            if engines.has(engine) || is_default(key, entry) {
                continue;
            }
            if engine != Engine::Sim || engines.sim != Simulated::WithCosts {
                absent.push(setting.path.as_str());
            } else if !point.sets(section, profile::KEY) {
                // Whoever sets it to none knows what comes of it.
                let costs = section.path_of(profile::KEY);
                unmodelled.entry(costs).or_default().push(&setting.path);
            }
        }
        let place = match engine {
            Engine::Sim => "the simulator".into(),
            real => format!("the engine {}, whose hosts are real", real.name()),
        };
        let unmodelled = unmodelled.iter();
        let without =
            unmodelled.map(|(costs, paths)| said(paths, &format!("the simulator without {costs}")));
        said(&absent, &place)
            .into_iter()
            .chain(without.flatten())
            .collect()
    }
}

fn is_default(key: &Key, entry: &Entry) -> bool {
    let Default::Value(text) = key.default else {
        return false;
    };
    key.kind.default(text).0 == entry.value
}

fn said(paths: &[&str], place: &str) -> Option<String> {
    let (last, first) = paths.split_last()?;
    let has = if first.is_empty() { "has" } else { "have" };
    let joined = match first {
        [] => (*last).to_string(),
        first => format!("{} and {last}", first.join(", ")),
    };
    Some(format!("{joined} {has} no effect in {place}"))
}
