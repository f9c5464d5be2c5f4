//! Compiles the algorithms that `cc/algorithms.def` lists, for the host.

use std::path::Path;

fn main() {
    // At run time: env!() would keep the path of the tree that a copied target folder was built in.
    let root = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let dir = Path::new(&root).join("../../cc");
    println!("cargo::rerun-if-changed={}", dir.display());

    let list = dir.join("algorithms.def");
    let text = std::fs::read_to_string(&list)
        .unwrap_or_else(|e| panic!("cannot read the list of algorithms {}: {e}", list.display()));
    let names = text
        .lines()
        .filter_map(|line| line.strip_prefix("CC_ALGORITHM_FILE(")?.strip_suffix(')'));

    let mut build = cc::Build::new();
    build
        .include(&dir)
        .std("gnu11")
        .opt_level(2)
        .warnings(true)
        .extra_warnings(true)
        .warnings_into_errors(true)
        .file(dir.join("cc_native.c"));
    for name in names {
        build.file(dir.join(format!("{name}.c")));
    }
    build.compile("knee_algorithms");
}
