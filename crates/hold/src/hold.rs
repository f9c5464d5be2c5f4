//! The process that makes changes, as root, and talks with who asks: a line of JSON for each order on its standard input,
//! one for each answer on its standard output.
//!
//! ```text
//! {"do": "hold", "settings": […], "deadline_s": 3600, "silence_s": 60}    {"held": [{"setting", "was", "is"}, …]}
//! {"do": "beat"}                                                        (nothing)
//! {"do": "end"}                         {"back": [{"setting", "is_back", "said"}, …], "why": "…"}, and it ends
//! ```
//!
//! `{"error": "…", "back": […]}`: not everything could be made, so that all was put back.

use std::io::{self, Stdin, Write};
use std::time::Duration;

use serde_json::{Value, json};

use super::change::{Back, Change, shown};
use super::journal::{self, Entry};
use super::setting::{Order, Setting};
use super::watchdog::{Answer, Lines, Next, Watchdog, all_back};

/// Longest that settings are held: a week.
const DEADLINE_SECONDS: u64 = 7 * 86_400;
const SILENCE_SECONDS: std::ops::RangeInclusive<u64> = 1..=3_600;
/// How often the watchdog is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// Obeys the orders that come until the end. Returns the exit code: 0 when everything is as it was.
pub fn hold(orders: Stdin, mut answers: impl Write) -> i32 {
    let mut orders = Lines::new(orders);
    let (settings, deadline, silence) = match first_order(&mut orders) {
        Ok(order) => order,
        Err(why) => return refused(&mut answers, &why, &[]),
    };
    // The watchdog has the locks of the entries too: another test waits until all is as it was.
    let (mut changes, mut entries) = match planned(&settings) {
        Ok(planned) => planned,
        Err(why) => return refused(&mut answers, &why, &[]),
    };
    let mut watchdog = match Watchdog::start(deadline) {
        Ok(watchdog) => watchdog,
        Err(error) => return refused(&mut answers, &format!("no watchdog: {error}."), &[]),
    };
    for at in 0..changes.len() {
        if let Err(why) = make(&mut changes[at], &mut entries, &mut watchdog) {
            let back = back(&mut watchdog, &changes[..=at]);
            return refused(&mut answers, &why, &back);
        }
    }
    let held: Vec<Value> = changes.iter().map(told).collect();
    let said = say(&mut answers, &json!({"held": held}));
    let why = match said {
        Ok(()) => wait(&mut orders, &mut watchdog, silence),
        Err(_) => Ended::Here("who asked for it is gone"),
    };
    let (back, why) = match why {
        Ended::Here(why) => (back(&mut watchdog, &changes), why.to_owned()),
        Ended::There(back, why) => (back, why),
    };
    let _ = say(&mut answers, &json!({"back": back, "why": why}));
    i32::from(back.iter().any(|one| !one.is_back))
}

fn first_order(orders: &mut Lines<Stdin>) -> Result<(Vec<Setting>, Duration, Duration), String> {
    let line = match orders.next(Some(Duration::from_secs(*SILENCE_SECONDS.end()))) {
        Ok(Next::Line(line)) => line,
        _ => return Err("no order came.".into()),
    };
    let (settings, deadline, silence) = match serde_json::from_str(&line) {
        Ok(Order::Hold {
            settings,
            deadline_s,
            silence_s,
        }) => (settings, deadline_s, silence_s),
        Ok(_) => return Err("got another order; expected hold.".into()),
        Err(error) => return Err(format!("the order cannot be read: {error}.")),
    };
    if !(1..=DEADLINE_SECONDS).contains(&deadline) || !SILENCE_SECONDS.contains(&silence) {
        return Err(format!(
            "got the deadline {deadline} s and the silence {silence} s; expected at most {DEADLINE_SECONDS} s and {} s.",
            SILENCE_SECONDS.end()
        ));
    }
    Ok((
        settings,
        Duration::from_secs(deadline),
        Duration::from_secs(silence),
    ))
}

/// Everything is checked, then locked, then read, before anything is changed. Of two that hold a setting, the one that ends
/// last would leave what it found. One that is as wanted already is held too: another test would put it back.
fn planned(settings: &[Setting]) -> Result<(Vec<Change>, Vec<Entry>), String> {
    settings.iter().try_for_each(Setting::check)?;
    journal::put_back_what_was_left()?;
    let mut entries: Vec<Entry> = Vec::new();
    let mut places = Vec::new();
    for setting in settings {
        let (place, target) = Change::place_of(setting)?;
        if entries.iter().any(|one| one.target == target) {
            return Err(format!(
                "{target}: is asked for twice; ask for one of them."
            ));
        }
        entries.push(Entry::take(&target)?);
        places.push((setting, place, target));
    }
    let mut changes = Vec::new();
    for (setting, place, target) in places {
        changes.extend(Change::of(setting, place, target)?);
    }
    Ok((changes, entries))
}

fn make(change: &mut Change, entries: &mut [Entry], watchdog: &mut Watchdog) -> Result<(), String> {
    let gone = |error: io::Error| format!("the watchdog is gone: {error}.");
    let entry = entries.iter_mut().find(|one| one.target == change.target);
    let entry = entry.expect("each setting has one");
    let unwritten = |error: io::Error| format!("what is changed cannot be written down: {error}.");
    entry.note(change).map_err(unwritten)?;
    watchdog.note(change).map_err(gone)?;
    let made = change.make();
    if let Some(after) = &change.after {
        watchdog.made(after).map_err(gone)?;
        entry.note(change).map_err(unwritten)?;
    }
    made
}

/// By the watchdog; by this process where somebody ended that.
fn back(watchdog: &mut Watchdog, changes: &[Change]) -> Vec<Back> {
    watchdog.put_back().unwrap_or_else(|_| all_back(changes))
}

/// Why the holding ends.
enum Ended {
    Here(&'static str),
    /// The watchdog has put everything back.
    There(Vec<Back>, String),
}

fn wait(orders: &mut Lines<Stdin>, watchdog: &mut Watchdog, silence: Duration) -> Ended {
    let mut silent = Duration::ZERO;
    loop {
        match orders.next(Some(LOOK)) {
            Ok(Next::Line(line)) => match serde_json::from_str(&line) {
                Ok(Order::Beat) => silent = Duration::ZERO,
                Ok(Order::End) => return Ended::Here("the end of the test"),
                _ => return Ended::Here("an order that cannot be read"),
            },
            Ok(Next::Nothing) => silent += LOOK,
            Ok(Next::Ended) | Err(_) => {
                return Ended::Here("who asked for it ended without a word");
            }
        }
        if silent >= silence {
            return Ended::Here("nothing was heard of who asked for it");
        }
        match watchdog.lines.next(Some(Duration::ZERO)) {
            Ok(Next::Nothing) => {}
            Ok(Next::Line(line)) => {
                if let Ok(Answer::Back(back, why)) = serde_json::from_str(&line) {
                    return Ended::There(back, why);
                }
            }
            Ok(Next::Ended) | Err(_) => return Ended::Here("somebody ended the watchdog"),
        }
    }
}

fn told(change: &Change) -> Value {
    let is = change.after.as_ref().map(shown);
    json!({"setting": change.target, "was": shown(&change.before), "is": is})
}

fn refused(answers: &mut impl Write, why: &str, back: &[Back]) -> i32 {
    let _ = say(answers, &json!({"error": why, "back": back}));
    1
}

fn say(answers: &mut impl Write, what: &Value) -> io::Result<()> {
    writeln!(answers, "{what}")?;
    answers.flush()
}
