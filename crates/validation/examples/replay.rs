//! Records the kernel's own algorithms, and replays recordings through `cc/`:
//!
//! ```text
//! replay record ALGORITHM OBJECT FILE   records sockets that choose knee_rec_ALGORITHM, until standard input ends
//! replay compare FILE…                  replays recordings and prints what differs
//! replay cut FILE FLOW OPS TO           the first OPS ops of one flow, as a recording of its own
//! ```

use std::error::Error;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use knee_validation::replay::{Reader, Replay, Writer, record};

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> Outcome {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["record", algorithm, object, file] => record_into(algorithm, Path::new(object), file),
        ["compare", ref files @ ..] if !files.is_empty() => {
            files.iter().try_for_each(|file| compare(file))
        }
        ["cut", file, flow, ops, to] => cut(file, flow.parse()?, ops.parse()?, to),
        _ => Err(
            "usage: replay record ALGORITHM OBJECT FILE | compare FILE… | cut FILE FLOW OPS TO"
                .into(),
        ),
    }
}

fn record_into(algorithm: &str, object: &Path, file: &str) -> Outcome {
    static IS_OVER: AtomicBool = AtomicBool::new(false);
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let mut writer = Writer::new(
        BufWriter::new(File::create(file)?),
        algorithm,
        release.trim(),
    )?;
    std::thread::spawn(|| {
        let mut all = Vec::new();
        // An error ends the recording as the end of the input does.
        let _ = std::io::stdin().read_to_end(&mut all);
        IS_OVER.store(true, Ordering::Relaxed);
    });
    let mut records = 0u64;
    let mut failed = None;
    let recorded = record(
        object,
        || println!("ready knee_rec_{algorithm}"),
        || IS_OVER.load(Ordering::Relaxed),
        |record| {
            records += 1;
            if let Err(e) = writer.write(record) {
                failed.get_or_insert(e);
            }
        },
    )?;
    if let Some(e) = failed {
        return Err(format!("{file}: cannot write: {e}").into());
    }
    writer.finish()?;
    println!("{records} records, {} lost", recorded.lost);
    Ok(())
}

fn open(file: &str) -> Result<Reader<BufReader<File>>, Box<dyn Error>> {
    let opened = File::open(file).map_err(|e| format!("{file}: {e}"))?;
    Ok(Reader::new(BufReader::new(opened)).map_err(|e| format!("{file}: {e}"))?)
}

fn compare(file: &str) -> Outcome {
    let reader = open(file)?;
    let algorithm = knee_cc::find(reader.algorithm())
        .ok_or_else(|| format!("{file}: no algorithm {:?} in cc/", reader.algorithm()))?;
    println!("{file}, Linux {}", reader.release());
    let mut replay = Replay::new(algorithm);
    for record in reader {
        replay.feed(&record.map_err(|e| format!("{file}: {e}"))?);
    }
    print!("{}", replay.finish());
    Ok(())
}

fn cut(file: &str, flow: u64, ops: u32, to: &str) -> Outcome {
    let reader = open(file)?;
    let (algorithm, release) = (reader.algorithm().to_owned(), reader.release().to_owned());
    let mut writer = Writer::new(BufWriter::new(File::create(to)?), &algorithm, &release)?;
    for record in reader {
        let record = record.map_err(|e| format!("{file}: {e}"))?;
        if record.flow == flow && record.number < ops {
            writer.write(&record)?;
        }
    }
    writer.finish()?;
    Ok(())
}
