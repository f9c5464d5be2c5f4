//! Builds the algorithms of cc/ as BPF objects, for both signatures of
//! cong_control, and the programs of bpf/, and puts them into the crate: whoever
//! has the package needs no compiler. Without clang the package
//! is built all the same, and says so when one is to be loaded.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// Compilers looked for, best first; BPF_CLANG names another.
const COMPILERS: &[&str] = &[
    "clang-16", "clang", "clang-22", "clang-21", "clang-20", "clang-19", "clang-18", "clang-17",
    "clang-15", "clang-14",
];

fn main() {
    // At run time: env!() would keep the path of the tree that a copied target folder was built in.
    let manifest = env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let root = Path::new(&manifest).join("../..");
    let out = env::var("OUT_DIR").expect("cargo says where to");
    println!("cargo::rerun-if-changed=../../cc");
    println!("cargo::rerun-if-changed=../../bpf");
    println!("cargo::rerun-if-env-changed=BPF_CLANG");
    let names = algorithms(&root);
    // What lies there stands for an algorithm that has cong_control, so nothing of an earlier build may.
    let _ = fs::remove_dir_all(format!("{out}/old"));
    let built = compiler().is_some_and(|compiler| {
        let two = "-DCC_BPF_CONG_CONTROL_2";
        build(&root, &compiler, "bpf-ops", &format!("{out}/new"), "")
            && build(&root, &compiler, "bpf-control", &format!("{out}/old"), two)
            && build(&root, &compiler, "bpf-programs", &out, "")
    });
    if !built {
        println!(
            "cargo::warning=algorithms of cc/ and programs of bpf/ are not built for the kernel: that needs clang 14 or later, make and libbpf's headers (Debian: clang-16 make libbpf-dev)"
        );
    }
    let mut code = String::from("pub static OBJECTS: &[Object] = &[\n");
    for name in names.iter().filter(|_| built) {
        let new = format!("{out}/new/{name}.bpf.o");
        let old = Some(format!("{out}/old/{name}.bpf.o"))
            .filter(|old| Path::new(old).exists())
            .unwrap_or_else(|| new.clone());
        writeln!(
            code,
            "    Object {{ name: {name:?}, with_flag: include_bytes!({new:?}), without_flag: include_bytes!({old:?}) }},"
        )
        .expect("a string takes all");
    }
    code.push_str("];\n");
    let mut programs = String::new();
    for name in [
        "trace_tcp",
        "trace_qdisc",
        "trace_host",
        "trace_stacks",
        "assign",
    ] {
        let bytes = match built {
            true => format!("include_bytes!(\"{out}/{name}.bpf.o\")"),
            false => "&[]".into(),
        };
        writeln!(
            programs,
            "pub static {}: &[u8] = {bytes};",
            name.to_uppercase()
        )
        .expect("a string takes all");
    }
    fs::write(format!("{out}/programs.rs"), programs).expect("cargo's folder can be written");
    fs::write(format!("{out}/objects.rs"), code).expect("cargo's folder can be written");
}

fn algorithms(root: &Path) -> Vec<String> {
    let list = root.join("cc/algorithms.def");
    fs::read_to_string(&list)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", list.display()))
        .lines()
        .filter_map(|line| line.strip_prefix("CC_ALGORITHM_FILE(")?.strip_suffix(')'))
        .map(str::to_owned)
        .collect()
}

fn compiler() -> Option<String> {
    let works = |name: &str| {
        Command::new(name)
            .args(["--print-targets"])
            .output()
            .is_ok_and(|said| {
                said.status.success() && String::from_utf8_lossy(&said.stdout).contains("bpf")
            })
    };
    if let Ok(named) = env::var("BPF_CLANG") {
        return works(&named).then_some(named);
    }
    COMPILERS
        .iter()
        .find(|name| works(name))
        .map(|name| (*name).to_owned())
}

/// By the rules of cc/bpf.mk, so that there is one place for how it is done.
fn build(root: &Path, compiler: &str, target: &str, out: &str, defines: &str) -> bool {
    Command::new("make")
        .current_dir(root)
        .args(["-s", "-f", "cc/bpf.mk", target])
        .args([
            format!("BPF_CLANG={compiler}"),
            format!("BPF_OUT={out}"),
            format!("BPF_DEFINES={defines}"),
        ])
        // cargo's jobs are not make's.
        .env_remove("MAKEFLAGS")
        .status()
        .is_ok_and(|status| status.success())
}
