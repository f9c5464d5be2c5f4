//! The BPF objects that come with the package.

/// Our builds of one algorithm.
pub struct Object {
    pub name: &'static str,
    /// For kernels whose cong_control has the arguments ack and flag (6.10 and later).
    pub with_flag: &'static [u8],
    pub without_flag: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/objects.rs"));

/// Why there are none.
pub const NOT_BUILT: &str = "this package was built without clang, so it has no BPF objects; \
     build it again where clang-16, make and libbpf-dev are installed";

/// Were the objects built?
pub fn is_built() -> bool {
    !OBJECTS.is_empty()
}
