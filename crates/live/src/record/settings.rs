//! What the host is set to, at the beginning and whenever it changed.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use ahash::AHashMap;
use knee_clock::thread_ns;
use knee_collect::KernelError;
use knee_collect::setting::{Place as Where, Setting};
use knee_collect::settings::Settings;
use knee_store::segment::Error;
use knee_tables::Settings as Rows;

use super::files::Sink;
use super::moment::Moment;
use super::options::Options;
use super::rows::Place;

/// Settings are read again so often at most.
const LEAST: Duration = Duration::from_secs(1);
/// And for at most this part of a processor's time: a reading takes about 1 ms, and
/// hosts of containers have thousands of settings.
const SHARE: u64 = 5_000;

const GONE: &str = "gone";

/// The table `settings`: a row for what is not as it was.
pub struct Changes {
    reader: Settings,
    known: Known,
    sink: Sink<Rows>,
    options: Options,
    /// Files that are closed.
    files: Vec<PathBuf>,
    segment_began: Option<Instant>,
    next: Instant,
}

impl Changes {
    pub fn new(options: &Options) -> Result<Changes, KernelError> {
        Ok(Changes {
            reader: Settings::new()?,
            known: Known::default(),
            sink: sink(options)?,
            options: options.clone(),
            files: Vec::new(),
            segment_began: None,
            next: Instant::now(),
        })
    }

    /// Reads all settings, when it is time to.
    pub fn sample(&mut self, place: &Place) -> Result<(), Error> {
        if Instant::now() < self.next {
            return Ok(());
        }
        self.read(place)
    }

    /// Reads all settings and writes what is not as it was.
    pub fn read(&mut self, place: &Place) -> Result<(), Error> {
        let (began, used_ns) = (Instant::now(), thread_ns());
        let now = Moment::now();
        let all = match self.segment_began {
            None => Some("start"),
            Some(then) if then.elapsed() >= self.options.segment_age => {
                // A segment of its own: with --keep the older ones may go.
                let full = std::mem::replace(&mut self.sink, sink(&self.options)?);
                self.files.extend(full.finish()?);
                Some("repeat")
            }
            Some(_) => None,
        };
        if all.is_some() {
            self.segment_began = Some(began);
        }
        let changes = self.known.compare(&mut self.reader, all);
        for (cause, setting) in &changes {
            let row = self.sink.row()?;
            fill(&mut self.sink.table, row, now, place, cause, setting);
        }
        let used_ns = thread_ns().saturating_sub(used_ns);
        self.next = began + LEAST.max(Duration::from_nanos(used_ns.saturating_mul(SHARE)));
        self.sink.commit()
    }

    /// Closes the table's files.
    pub fn finish(mut self) -> Result<Vec<PathBuf>, Error> {
        self.files.extend(self.sink.finish()?);
        self.files.retain(|path| path.exists());
        Ok(self.files)
    }
}

/// Changes are rare: each is with the kernel at once.
fn sink(options: &Options) -> Result<Sink<Rows>, Error> {
    Sink::new(options, Duration::ZERO)
}

fn fill(table: &mut Rows, row: usize, now: Moment, place: &Place, cause: &str, setting: &Setting) {
    table.t_unix_ns.set(row, now.unix_ns);
    table.t_mono_ns.set(row, now.mono_ns);
    table.host.set(row, &place.host);
    table.netns.set(row, &place.netns);
    table.cause.set(row, cause);
    table.kind.set(row, setting.place.kind);
    for (column, text) in [
        (&mut table.boot_id, place.boot_id.as_deref()),
        (&mut table.host_id, place.host_id.as_deref()),
        (&mut table.interface, Some(&*setting.place.interface)),
        (&mut table.handle, Some(&*setting.place.handle)),
        (&mut table.parent, Some(&*setting.place.parent)),
        (&mut table.name, Some(&*setting.place.name)),
        (&mut table.unit, Some(setting.unit)),
    ] {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            column.set(row, text);
        }
    }
    match &setting.value {
        Ok(value) => table.value.set(row, value),
        Err(why) => table.missing.set(row, why),
    }
}

/// Settings as they were when they were read last.
#[derive(Default)]
struct Known {
    values: AHashMap<Where, Value>,
    /// Number of this reading.
    reading: u64,
}

struct Value {
    value: Result<String, String>,
    seen: u64,
}

trait Read {
    fn read(&mut self, take: &mut impl FnMut(Setting));
}

impl Read for Settings {
    fn read(&mut self, take: &mut impl FnMut(Setting)) {
        Settings::read(self, take);
    }
}

impl Known {
    /// What is not as it was, with the cause of its row; `all`: everything for this
    /// cause.
    fn compare(
        &mut self,
        from: &mut impl Read,
        all: Option<&'static str>,
    ) -> Vec<(&'static str, Setting)> {
        self.reading += 1;
        let reading = self.reading;
        let mut changes = Vec::new();
        let mut unread = Vec::new();
        from.read(&mut |setting| {
            if setting.place.name.is_empty() && setting.value.is_err() {
                unread.push(setting.place.kind);
            }
            let cause = match self.values.get_mut(&setting.place) {
                // Told twice: the first one counts.
                Some(known) if known.seen == reading => return,
                Some(known) => {
                    known.seen = reading;
                    if known.value != setting.value {
                        known.value.clone_from(&setting.value);
                        Some("change")
                    } else {
                        all
                    }
                }
                None => {
                    let value = Value {
                        value: setting.value.clone(),
                        seen: reading,
                    };
                    self.values.insert(setting.place.clone(), value);
                    all.or(Some("change"))
                }
            };
            changes.extend(cause.map(|cause| (cause, setting)));
        });
        // What could not be read this time is not gone.
        let is_gone = |place: &Where, value: &Value| {
            value.seen != reading && (place.name.is_empty() || !unread.contains(&place.kind))
        };
        let gone = self.values.extract_if(|place, value| is_gone(place, value));
        let first_gone = changes.len();
        changes.extend(gone.map(|(place, _)| {
            let value = Err(GONE.to_owned());
            (
                "change",
                Setting {
                    place,
                    unit: "",
                    value,
                },
            )
        }));
        changes[first_gone..].sort_by(|(_, one), (_, other)| one.place.cmp(&other.place));
        changes
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    struct Told(Vec<Setting>);

    impl Read for Told {
        fn read(&mut self, take: &mut impl FnMut(Setting)) {
            self.0.iter().cloned().for_each(take);
        }
    }

    fn mtu(device: &str, bytes: u32) -> Setting {
        Setting::of_device("link", &Arc::from(device), "mtu", "bytes", bytes)
    }

    /// Cause, device and value of each change.
    fn changes(known: &mut Known, now: &[Setting], all: Option<&'static str>) -> Vec<String> {
        let found = known.compare(&mut Told(now.to_vec()), all);
        let text = |value: Result<String, String>| value.unwrap_or_else(|why| format!("? {why}"));
        found
            .into_iter()
            .map(|(cause, setting)| {
                format!(
                    "{cause} {} {}",
                    setting.place.interface,
                    text(setting.value)
                )
            })
            .collect()
    }

    #[test]
    fn everything_has_a_row_at_the_start_and_later_only_what_changed() {
        let mut known = Known::default();
        let (lo, one, other) = (mtu("lo", 65_536), mtu("eth0", 1_500), mtu("eth0", 9_000));
        let start = changes(&mut known, &[lo.clone(), one.clone()], Some("start"));
        assert_eq!(start, ["start lo 65536", "start eth0 1500"]);
        assert!(changes(&mut known, &[lo.clone(), one], None).is_empty());
        let changed = changes(&mut known, &[lo.clone(), other.clone()], None);
        assert_eq!(changed, ["change eth0 9000"]);
        let repeated = changes(&mut known, &[lo, other], Some("repeat"));
        assert_eq!(repeated, ["repeat lo 65536", "repeat eth0 9000"]);
    }

    #[test]
    fn what_is_gone_has_a_row_and_what_comes_back_another() {
        let mut known = Known::default();
        let (lo, one) = (mtu("lo", 65_536), mtu("eth0", 1_500));
        changes(&mut known, &[lo.clone(), one.clone()], Some("start"));
        let gone = changes(&mut known, std::slice::from_ref(&lo), None);
        assert_eq!(gone, ["change eth0 ? gone"]);
        assert!(changes(&mut known, std::slice::from_ref(&lo), None).is_empty());
        assert_eq!(changes(&mut known, &[lo, one], None), ["change eth0 1500"]);
    }

    #[test]
    fn what_could_not_be_read_this_time_is_not_gone() {
        let mut known = Known::default();
        let one = mtu("eth0", 1_500);
        changes(&mut known, std::slice::from_ref(&one), Some("start"));
        let failed = Setting::unread("link", "out of memory".to_owned());
        let told = changes(&mut known, &[failed], None);
        assert_eq!(told, ["change  ? out of memory"]);
        assert_eq!(changes(&mut known, &[one], None), ["change  ? gone"]);
    }

    #[test]
    fn the_first_of_two_settings_of_one_place_counts() {
        let mut known = Known::default();
        let both = [mtu("eth0", 1_500), mtu("eth0", 9_000)];
        assert_eq!(
            changes(&mut known, &both, Some("start")),
            ["start eth0 1500"]
        );
        assert!(changes(&mut known, &both, None).is_empty());
    }
}
