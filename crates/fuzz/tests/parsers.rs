//! A short search, the same each time; `make fuzz` is the long one (docs/ci.md).

use std::path::Path;

use knee_fuzz::guard::Guard;
use knee_fuzz::mutate::mutate;
use knee_fuzz::{INPUT_BYTES, TARGETS, Target};
use knee_units::rng::Stream;

/// Damaged samples of each parser.
const INPUTS: u64 = 2_000;
const SEED: u64 = 1;

/// Inputs that once broke a parser: `findings/PARSER/` holds them.
fn findings(target: &Target) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("findings");
    let Ok(entries) = std::fs::read_dir(folder.join(target.name)) else {
        return Vec::new();
    };
    entries
        .map(|entry| std::fs::read(entry.unwrap().path()).unwrap())
        .collect()
}

/// One test alone in its process: memory is counted for all threads together.
#[test]
fn every_parser_holds_its_claims_on_samples_findings_and_damaged_samples() {
    let saved = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let guard = Guard::new(saved);
    let mut broken = Vec::new();
    for target in TARGETS.iter() {
        let mut samples = (target.seeds)();
        assert!(!samples.is_empty(), "{}: no samples", target.name);
        samples.extend(findings(target));
        broken.extend((samples.iter()).filter_map(|input| guard.run(target, input).err()));
        let mut choice = Stream::new(SEED, target.name);
        for n in 0..INPUTS {
            let mut pick = || &samples[(choice.next_u64() % samples.len() as u64) as usize];
            let (sample, other) = (pick(), pick());
            let input = mutate(SEED + n, sample, other, target.words, INPUT_BYTES);
            broken.extend(guard.run(target, &input).err());
        }
    }
    assert!(broken.is_empty(), "seed {SEED}:\n{}", broken.join("\n"));
}
