//! Built by `make fuzz`: libFuzzer over one parser, which FUZZ_TARGET names;
//! without it the parsers are listed. Else: `knee-fuzz PARSER FILE…` checks the
//! files, which is how a finding is looked at in a debugger.

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
mod search {
    use std::path::Path;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::{env, fs, process};

    use knee_fuzz::mutate::mutate;
    use knee_fuzz::{TARGETS, Target};

    static TARGET: OnceLock<&Target> = OnceLock::new();
    static PEAK_BYTES: AtomicUsize = AtomicUsize::new(0);

    /// Chooses the parser and puts its samples into the folder FUZZ_SEEDS.
    fn begin() {
        let Ok(name) = env::var("FUZZ_TARGET") else {
            TARGETS
                .iter()
                .for_each(|target| println!("{}", target.name));
            process::exit(0);
        };
        let Some(target) = TARGETS.iter().find(|target| target.name == name) else {
            eprintln!("FUZZ_TARGET={name}: no such parser; without it they are listed");
            process::exit(2);
        };
        if let Ok(folder) = env::var("FUZZ_SEEDS") {
            for (n, seed) in (target.seeds)().iter().enumerate() {
                let path = Path::new(&folder).join(format!("seed-{n}"));
                if let Err(error) = fs::write(&path, seed) {
                    eprintln!("{}: {error}", path.display());
                    process::exit(2);
                }
            }
        }
        TARGET.get_or_init(|| target);
    }

    fn target() -> &'static Target {
        TARGET.get().expect("libFuzzer begins with begin()")
    }

    libfuzzer_sys::fuzz_target!(init: begin(), |input: &[u8]| {
        let peak = target().run(input);
        if PEAK_BYTES.fetch_max(peak, Ordering::Relaxed) < peak {
            eprintln!("peak_bytes: {peak} of {}", input.len());
        }
    });

    libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| {
        if seed % 2 == 0 {
            return libfuzzer_sys::fuzzer_mutate(data, size, most);
        }
        let mutated = mutate(seed.into(), &data[..size], &[], target().words, most);
        data[..mutated.len()].copy_from_slice(&mutated);
        mutated.len()
    });
}

#[cfg(not(fuzzing))]
fn main() -> std::process::ExitCode {
    use knee_fuzz::TARGETS;
    use knee_fuzz::guard::Guard;

    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    let Some(target) = TARGETS.iter().find(|target| target.name == name) else {
        eprintln!("knee-fuzz PARSER FILE…: got parser {name:?}; known:");
        for target in TARGETS.iter() {
            eprintln!("  {:<12} {}", target.name, target.about);
        }
        return std::process::ExitCode::from(2);
    };
    let guard = Guard::new(&std::env::temp_dir());
    let mut failed = false;
    for file in arguments {
        let outcome = std::fs::read(&file)
            .map_err(|error| error.to_string())
            .and_then(|input| guard.run(target, &input));
        match outcome {
            Ok(peak) => println!("{file}: holds, {peak} bytes of memory at most"),
            Err(error) => {
                eprintln!("{file}: {error}");
                failed = true;
            }
        }
    }
    std::process::ExitCode::from(u8::from(failed))
}
