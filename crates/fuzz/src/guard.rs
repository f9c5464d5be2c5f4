//! Runs inputs one by one; one that ends badly is saved before it is told of.

use std::fs;
use std::io::Write;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::Target;

/// Thousands of times what the slowest input takes, for machines that are busy.
const LONGEST: Duration = Duration::from_secs(10);

type Current = Option<(Instant, &'static str, Vec<u8>)>;

/// The input that runs, for the watchdog.
static CURRENT: Mutex<Current> = Mutex::new(None);

/// Saves bad inputs in a folder, and ends the process when one takes too long.
pub struct Guard {
    folder: PathBuf,
}

impl Guard {
    pub fn new(folder: &Path) -> Guard {
        let to = folder.to_owned();
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(Duration::from_millis(100));
                let current = CURRENT.lock().expect("nothing panics with it locked");
                if let Some((since, name, input)) = &*current
                    && since.elapsed() > LONGEST
                {
                    let path = save(&to, name, input);
                    eprintln!("{name}: an input takes more than {LONGEST:?}: {path}");
                    process::exit(1);
                }
            }
        });
        Guard {
            folder: folder.to_owned(),
        }
    }

    /// # Errors
    /// What the input broke, and where it is saved.
    pub fn run(&self, target: &'static Target, input: &[u8]) -> Result<usize, String> {
        let now = (Instant::now(), target.name, input.to_vec());
        *CURRENT.lock().expect("nothing panics with it locked") = Some(now);
        let result = panic::catch_unwind(AssertUnwindSafe(|| target.run(input)));
        *CURRENT.lock().expect("nothing panics with it locked") = None;
        result.map_err(|panic| {
            let said = (panic.downcast_ref::<String>().map(String::as_str))
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("a panic without words");
            let path = save(&self.folder, target.name, input);
            format!("{}: {said}; the input: {path}", target.name)
        })
    }
}

/// Saves the input under a name that its bytes give; where, or why not.
fn save(folder: &Path, name: &str, input: &[u8]) -> String {
    let hash = input.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let path = folder.join(format!("{name}-{hash:016x}"));
    // A new file: the folder may be everybody's, and what lies there by that name another's link.
    let saved = fs::create_dir_all(folder)
        .and_then(|()| fs::File::create_new(&path))
        .and_then(|mut file| file.write_all(input));
    match saved {
        Ok(()) => path.display().to_string(),
        Err(error) => format!("not saved to {}: {error}", path.display()),
    }
}
