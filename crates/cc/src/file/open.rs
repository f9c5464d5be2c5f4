//! Loads a shared object, where there is a loader.

use std::path::Path;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

use libloading::Library;

use super::{Entry, FileError, LOADED, find};
use crate::algorithm::{Algorithm, RawAlgorithm};

unsafe extern "C" {
    static cc_abi: u32;
}

/// Loads the algorithm of a shared object, which is called `name` from then on; `None`: as it calls itself. `digest`: of what
/// it was made of. One that is there already is not loaded again.
///
/// # Errors
/// It is no algorithm by the contract of `cc/cc.h`.
pub fn load(
    object: &Path,
    name: Option<&str>,
    digest: &str,
) -> Result<&'static Algorithm, FileError> {
    if let Some(known) = name.and_then(|name| find(name, digest)) {
        return Ok(known);
    }
    // SAFETY: what the object does while it is loaded is the user's affair, as what his programs do.
    let library = unsafe { Library::new(object) }
        .map_err(|error| FileError::Unloadable(error.to_string()))?;
    // SAFETY: cc_file.h and adapter.c give the symbols these types; one who gives them others has to answer for it.
    let (abi, raw, private_bytes) = unsafe {
        let abi = library.get::<*const u32>(b"cc_file_abi\0");
        let abi = **abi.map_err(|_| FileError::NoSymbol("cc_file_abi"))?;
        let raw = library.get::<*const *const RawAlgorithm>(b"cc_file_algorithm\0");
        (
            abi,
            **raw.map_err(|_| FileError::NoSymbol("cc_file_algorithm"))?,
            (library.get::<*const u32>(b"knee_private_bytes\0").ok()).map(|bytes| **bytes),
        )
    };
    // SAFETY: a constant of cc_native.c.
    let expected = unsafe { cc_abi };
    if abi != expected {
        return Err(FileError::Layout { got: abi, expected });
    }
    let raw = match raw.is_aligned() {
        // SAFETY: the object has it for as long as it is loaded, which is for ever.
        true => unsafe { raw.as_ref() },
        false => None,
    };
    let raw = raw.ok_or(FileError::NoSymbol("description"))?;
    // SAFETY: the layout is ours, and the strings and tables live as long as the object.
    let algorithm = unsafe { Algorithm::of_file(raw, name, digest, private_bytes) };
    let algorithm = algorithm.map_err(FileError::Description)?;
    std::mem::forget(library);
    if let Some(known) = find(algorithm.name(), digest) {
        return Ok(known);
    }
    Ok(keep(algorithm))
}

fn keep(algorithm: Algorithm) -> &'static Algorithm {
    let entry = Box::leak(Box::new(Entry {
        algorithm,
        next: LOADED.load(Acquire),
    }));
    while let Err(newer) = LOADED.compare_exchange(entry.next, entry, AcqRel, Acquire) {
        entry.next = newer;
    }
    &entry.algorithm
}
