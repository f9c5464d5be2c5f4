//! Builds the choice of an arm for this program: one piece of C for the kernel and for us.

fn main() {
    println!("cargo::rerun-if-changed=../../bpf");
    // At run time: env!() would keep the path of the tree that a copied target folder was built in.
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let root = std::path::Path::new(&manifest).join("../..");
    cc::Build::new()
        .std("gnu11")
        .opt_level(2)
        .warnings(true)
        .extra_warnings(true)
        .warnings_into_errors(true)
        .file(root.join("bpf/assign_native.c"))
        .compile("knee_assign");
}
