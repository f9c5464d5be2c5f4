//! Modules of a kernel that is all the lab's, which a guest's is.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

/// Loads a module with those words, its parameters.
///
/// # Errors
/// The kernel's, or the file's.
pub fn load_module(path: &Path, words: &str) -> io::Result<()> {
    let (module, words) = (File::open(path)?, CString::new(words)?);
    // SAFETY: the text ends, and the kernel copies it.
    let done = unsafe {
        libc::syscall(
            libc::SYS_finit_module,
            module.as_raw_fd(),
            words.as_ptr(),
            0,
        )
    };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
