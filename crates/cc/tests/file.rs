//! An algorithm of a shared object.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use knee_cc::file::{FileError, find, load};
use knee_cc::{CcIn, CcOut, Instance, Op, on_breach};

fn built(source: &Path, flags: &[&str]) -> PathBuf {
    let cc = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cc");
    let mut names = source.file_name().unwrap().to_owned();
    names.push(format!("{}.{}.so", flags.len(), std::process::id()));
    let target = std::env::temp_dir().join(names);
    let done = Command::new(std::env::var("CC").unwrap_or("cc".into()))
        .args([
            "-std=gnu11",
            "-O2",
            "-fPIC",
            "-shared",
            "-ffreestanding",
            "-nostdinc",
        ])
        .args([
            "-nodefaultlibs",
            "-nostartfiles",
            "-fvisibility=hidden",
            "-I",
        ])
        .args([cc.as_os_str(), "-o".as_ref(), target.as_os_str()])
        .args(flags)
        .arg(cc.join(source))
        .status()
        .expect("a C compiler");
    assert!(done.success());
    target
}

#[test]
fn an_object_is_loaded_once_by_name_and_digest() {
    let object = built(Path::new("reno.c"), &["-DCC_FILE"]);
    let loaded = load(&object, None, "a").unwrap();
    assert_eq!((loaded.name(), loaded.digest()), ("reno", Some("a")));
    assert!(std::ptr::eq(loaded, load(&object, None, "a").unwrap()));
    assert!(std::ptr::eq(loaded, find("reno", "a").unwrap()));
    let other = load(&object, Some("other"), "b").unwrap();
    assert_eq!((other.name(), other.digest()), ("other", Some("b")));
    assert!(find("other", "a").is_none() && find("reno", "b").is_none());
    assert_eq!(knee_cc::find("reno").unwrap().digest(), None);

    let mut mine = Instance::new(other, &[("beta", 256)]).unwrap();
    let mut out = CcOut {
        snd_cwnd: 40,
        ..CcOut::default()
    };
    mine.call(Op::Ssthresh, &CcIn::default(), &mut out);
    assert_eq!(out.ret, 10);
}

#[test]
fn what_is_no_algorithm_is_refused() {
    let missing = load(Path::new("/no/such.so"), None, "c").unwrap_err();
    assert!(matches!(missing, FileError::Unloadable(_)), "{missing}");
    let plain = built(Path::new("reno.c"), &[]);
    let plain = load(&plain, None, "d").unwrap_err();
    assert_eq!(plain, FileError::NoSymbol("cc_file_abi"));
    let other = built(Path::new("reno.c"), &["-DCC_FILE", "-DCC_ABI=7u"]);
    let other = load(&other, None, "e").unwrap_err();
    assert!(matches!(other, FileError::Layout { got: 7, .. }), "{other}");
}

#[test]
fn a_description_that_lies_is_refused() {
    let source = std::env::temp_dir().join(format!("lies.{}.c", std::process::id()));
    for (lie, said) in [
        (".params = 0", "2 parameters, where there is no such table"),
        (
            ".params = (const struct cc_param *)9",
            "2 parameters, where there is no such table",
        ),
        (
            ".n_params = 3, .state_bytes = 12",
            "its parameter 3 lacks a text",
        ),
        (".n_params = 0x7fffffff", "no room for its parameters"),
        (".state_bytes = 1048580", "its state has 1048580 bytes"),
        (".state_bytes = 4", "no room for its parameters"),
        (".n_phases = 1", "1 phases, where there is no such table"),
        (".kernel_name = 0", "no name for the kernel"),
        (".name = 0", "no name"),
    ] {
        let text =
            include_str!("../../../cc/reno.c").replace(".year =", &format!("{lie}, .year ="));
        assert!(text.contains(lie));
        std::fs::write(&source, text).unwrap();
        let got = load(&built(&source, &["-DCC_FILE"]), None, lie).unwrap_err();
        assert!(matches!(got, FileError::Description(_)), "{lie}: {got}");
        assert!(got.to_string().contains(said), "{lie}: {got}");
    }
    std::fs::remove_file(&source).unwrap();
}

#[test]
fn what_an_op_may_not_do_is_seen() {
    static SEEN: Mutex<Vec<(String, &str, u32)>> = Mutex::new(Vec::new());
    on_breach(|under_way, what| {
        // SAFETY: it is asked by the thread that makes the calls.
        let call = unsafe { under_way.taken_down() }.unwrap();
        let (algorithm, function, _) = under_way.call().unwrap();
        let who = format!("{} {function}", algorithm.name());
        // SAFETY: it is asked of the call that is under way.
        let cwnd = unsafe { call.out() }.snd_cwnd;
        SEEN.lock().unwrap().push((who, what, cwnd));
    });
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/common/bad.c");
    let bad = load(&built(&source, &["-DCC_FILE"]), None, "f").unwrap();
    for how in 0..=5 {
        let mut made = Instance::new(bad, &[("how", how)]).unwrap();
        let mut out = CcOut {
            snd_cwnd: 40,
            ..CcOut::default()
        };
        let input = CcIn {
            snd_una: 3,
            ..CcIn::default()
        };
        let call = AssertUnwindSafe(|| made.call(Op::Ssthresh, &input, &mut out));
        assert_eq!(catch_unwind(call).is_ok(), how == 0, "{how}");
        assert_eq!(input.snd_una, 3);
        assert_eq!((out.ret, out.snd_cwnd), (if how == 0 { 9 } else { 0 }, 40));
    }
    // get_info() gets a copy of the state, and what it writes of that is nobody's.
    for how in 5..=9 {
        let made = Instance::new(bad, &[("how", how)]).unwrap();
        let (before, input) = (made.state().to_vec(), CcIn::default());
        let told = catch_unwind(AssertUnwindSafe(|| made.info(&input)));
        let bandwidth = told.ok().map(|info| info.unwrap().bw_bytes_per_sec);
        assert_eq!(bandwidth, (how <= 6).then_some(Some(5)), "{how}");
        assert_eq!(
            (made.state(), input),
            (before.as_slice(), CcIn::default()),
            "{how}"
        );
    }
    let of_ssthresh = [
        "wrote outside of its state",
        "wrote outside of its state",
        "changed what the stack shows, which is read only",
        "wrote outside of what it may change",
        "left a window of 0 segments",
    ];
    let of_ssthresh = of_ssthresh.map(|what| ("bad ssthresh".to_owned(), what, 40));
    let of_info = [
        "changed what the stack shows, which is read only",
        "wrote outside of what it may change",
        "wrote outside of its state",
    ];
    let of_info = of_info.map(|what| ("bad get_info".to_owned(), what, 0));
    assert_eq!(*SEEN.lock().unwrap(), [&of_ssthresh[..], &of_info].concat());
}
