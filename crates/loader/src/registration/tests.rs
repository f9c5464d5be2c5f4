use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::{env, fs};

use nix::unistd::mkdtemp;

use super::*;

/// Reads a socket where there is none; a verifier that lets it pass is none.
const BAD: &str = r#"
struct tcp_congestion_ops {
    void (*ssthresh)(void), (*cong_avoid)(void), (*set_state)(void), (*cwnd_event)(void), (*in_ack_event)(void);
    void (*pkts_acked)(void), (*min_tso_segs)(void), (*cong_control)(void), (*undo_cwnd)(void), (*sndbuf_expand)(void);
    char name[16];
    unsigned int flags;
};
char licence[] __attribute__((section("license"), used)) = "GPL";
__attribute__((section("struct_ops/bad"), used)) int bad(unsigned long long *ctx)
{
    return *(volatile int *)(ctx[0] + (1 << 20));
}
__attribute__((section(".struct_ops"), used)) struct tcp_congestion_ops knee_bad = {
    .ssthresh = (void *)bad, .name = "knee_bad",
};
"#;

fn build<'a>(name: &'a str, called: &'a str) -> Build<'a> {
    Build {
        name,
        called,
        params: &[],
        linked: false,
        who: Choosers::Administrators,
    }
}

fn compiled(code: &str) -> Vec<u8> {
    let folder = mkdtemp(&env::temp_dir().join("tcpknee-bad-XXXXXX")).expect("a folder");
    let (source, object) = (folder.join("bad.c"), folder.join("bad.o"));
    fs::write(&source, code).expect("the source");
    let clang = env::var("BPF_CLANG").unwrap_or_else(|_| "clang-16".into());
    let done = Command::new(clang)
        .args(["-target", "bpf", "-O2", "-g", "-c", "-o"])
        .args([&object, &source])
        .status()
        .expect("objects are there, so the compiler is");
    assert!(done.success());
    let bytes = fs::read(&object).expect("the object");
    fs::remove_dir_all(&folder).expect("our folder");
    bytes
}

#[test]
fn a_verifier_s_refusal_shows_its_last_lines_and_names_the_file_with_all() {
    if requirements::check(requirements::STRUCT_OPS).is_err() || OBJECTS.is_empty() {
        return;
    }
    let bad = build("bad", "knee_bad");
    let error = attach(&bad, &compiled(BAD))
        .map(|_| ())
        .expect_err("the verifier refuses it");
    let said = error.to_string();
    assert!(said.contains("the verifier refuses it"), "{said}");
    assert!(said.contains("access beyond struct tcp_sock"), "{said}");
    let file = said
        .split_once("The whole log is in ")
        .and_then(|(_, rest)| rest.strip_suffix('.'))
        .unwrap_or_else(|| panic!("no file is named: {said}"));
    let log = fs::read_to_string(file).expect("the log was kept");
    let mode = fs::metadata(file)
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600, "it shows addresses of the kernel");
    assert!(log.contains("BEGIN PROG LOAD LOG"), "{log}");
    fs::remove_file(file).expect("the log is ours");
    assert!(!crate::available().contains(&"knee_bad".to_owned()));
}

#[test]
fn an_object_of_another_shape_is_not_written_to() {
    let build = Build {
        who: Choosers::Everybody,
        ..build("reno", "k12_reno")
    };
    let mut ops = [0u8; 128];
    assert_eq!(name_and_flags(&build, &mut ops), None);
    assert_eq!(name_and_flags(&build, &mut ops[..90]), None);
    assert_eq!(ops, [0u8; 128]);
    ops[NAME_AT..NAME_AT + 9].copy_from_slice(b"knee_reno");
    ops[FLAGS_AT] = 2;
    assert_eq!(name_and_flags(&build, &mut ops), Some(()));
    assert_eq!(&ops[NAME_AT..NAME_AT + 9], b"k12_reno\0");
    assert_eq!(ops[FLAGS_AT], 3);
}

#[test]
fn parameters_are_set_in_their_own_places() {
    let params = [("hystart".to_owned(), 1), ("beta".to_owned(), 600)];
    let cubic = Build {
        params: &params,
        ..build("cubic", "knee_cubic")
    };
    let listed = knee_cc::find("cubic").expect("an algorithm").params();
    let mut values = vec![0; 4 * listed.len()];
    assert_eq!(set_params(&cubic, &mut values), Some(()));
    for (param, value) in listed.iter().zip(values.chunks(4)) {
        let expected = params.iter().find(|(name, _)| name == param.name);
        let expected = expected.map_or(0, |(_, value)| *value);
        assert_eq!(value, expected.to_ne_bytes(), "{}", param.name);
    }
    assert_eq!(set_params(&cubic, &mut values[..8]), None);
}
