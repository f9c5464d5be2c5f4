//! The BPF objects: those that come with the package, and those of users' files.

use std::sync::{Mutex, PoisonError};

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

/// The build of an algorithm from a file.
#[derive(Clone, Copy)]
pub struct OfFile {
    pub object: &'static Object,
    /// What the object calls itself.
    pub kernel_name: &'static str,
    /// Its parameters, in their order.
    pub params: &'static [String],
}

static OF_FILES: Mutex<Vec<OfFile>> = Mutex::new(Vec::new());

/// Takes the builds of an algorithm from a file, for kernels whose cong_control has the arguments ack and flag, and for
/// others. It goes before one of that name that was added earlier.
pub fn add(
    name: &str,
    kernel_name: &str,
    params: Vec<String>,
    with_flag: Vec<u8>,
    without_flag: Vec<u8>,
) {
    let object = Box::leak(Box::new(Object {
        name: String::from(name).leak(),
        with_flag: with_flag.leak(),
        without_flag: without_flag.leak(),
    }));
    let mut added = OF_FILES.lock().unwrap_or_else(PoisonError::into_inner);
    added.push(OfFile {
        object,
        kernel_name: String::from(kernel_name).leak(),
        params: params.leak(),
    });
}

/// The newest of that name.
pub fn of_file(name: &str) -> Option<OfFile> {
    let added = OF_FILES.lock().unwrap_or_else(PoisonError::into_inner);
    added
        .iter()
        .rev()
        .find(|added| added.object.name == name)
        .copied()
}

/// The builds of that name.
pub fn find(name: &str) -> Option<&'static Object> {
    let own = || OBJECTS.iter().find(|object| object.name == name);
    of_file(name).map(|added| added.object).or_else(own)
}

/// Were the objects built?
pub fn is_built() -> bool {
    !OBJECTS.is_empty()
}
