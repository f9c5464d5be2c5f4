//! Folders that the front writes into, and what it reads of unfinished segments.

use std::fs::File;
use std::os::fd::{IntoRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Mutex;

use knee_store::folder::{self, Readers};
use knee_store::segment;
use pyo3::prelude::*;

use crate::errors;

/// See `knee_store::folder::Folder`.
#[pyclass(frozen, module = "tcpknee._core")]
pub struct Folder {
    held: folder::Folder,
}

#[pymethods]
impl Folder {
    #[new]
    #[pyo3(signature = (path, *, make=true, of_root=false))]
    fn new(py: Python<'_>, path: PathBuf, make: bool, of_root: bool) -> PyResult<Folder> {
        let held = match (of_root, make) {
            (true, _) => folder::Folder::make_of_root(&path),
            (false, true) => folder::Folder::make(&path),
            (false, false) => folder::Folder::open(&path),
        };
        Folder::of(py, held)
    }

    #[getter]
    fn made(&self) -> bool {
        self.held.made()
    }

    #[getter]
    fn owner(&self, py: Python<'_>) -> PyResult<u32> {
        self.held.owner().map_err(|error| errors::folder(py, error))
    }

    fn names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.held.names().map_err(|error| errors::folder(py, error))
    }

    fn folder(&self, py: Python<'_>, name: &str) -> PyResult<Folder> {
        Folder::of(py, self.held.folder(name))
    }

    /// One that is there; `None`: none is. A link is none.
    fn open_folder(&self, py: Python<'_>, name: &str) -> PyResult<Option<Folder>> {
        let found = self.held.open_folder(name);
        let held = found.map_err(|error| errors::folder(py, error))?;
        Ok(held.map(|held| Folder { held }))
    }

    /// A new file that `replace` puts at `name`: its name and descriptor.
    fn temporary(&self, py: Python<'_>, name: &str, public: bool) -> PyResult<(String, RawFd)> {
        let readers = if public { Readers::All } else { Readers::Own };
        let made = self.held.temporary(name, readers);
        let (temporary, file) = made.map_err(|error| errors::folder(py, error))?;
        Ok((temporary, file.into_raw_fd()))
    }

    /// The descriptor of a file that nobody but us can have written; `None`: not there.
    fn open_own(&self, py: Python<'_>, name: &str) -> PyResult<Option<RawFd>> {
        let found = self.held.open_own(name);
        let found = found.map_err(|error| errors::folder(py, error))?;
        Ok(found.map(File::into_raw_fd))
    }

    fn replace(&self, py: Python<'_>, temporary: &str, name: &str) -> PyResult<()> {
        let moved = self.held.replace(temporary, name);
        moved.map_err(|error| errors::folder(py, error))
    }

    fn remove(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        let removed = self.held.remove(name);
        removed.map_err(|error| errors::folder(py, error))
    }

    fn remove_empty(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        let removed = self.held.remove_empty(name);
        removed.map_err(|error| errors::folder(py, error))
    }

    fn give(&self, py: Python<'_>, name: &str, owner: u32, group: u32) -> PyResult<()> {
        let given = self.held.give(name, owner, group);
        given.map_err(|error| errors::folder(py, error))
    }

    fn give_made(&self, py: Python<'_>, owner: u32, group: u32) -> PyResult<()> {
        let given = self.held.give_made(owner, group);
        given.map_err(|error| errors::folder(py, error))
    }

    fn sweep(&self, py: Python<'_>) -> PyResult<()> {
        let swept = self.held.sweep();
        swept.map_err(|error| errors::folder(py, error))
    }

    /// `None`: another process holds it.
    fn lock(&self, py: Python<'_>, name: &str) -> PyResult<Option<Lock>> {
        let lock = self.held.lock(name);
        let lock = lock.map_err(|error| errors::folder(py, error))?;
        Ok(lock.map(|lock| Lock {
            held: Mutex::new(Some(lock)),
        }))
    }
}

impl Folder {
    pub fn held(&self) -> &folder::Folder {
        &self.held
    }

    fn of(py: Python<'_>, held: Result<folder::Folder, folder::Error>) -> PyResult<Folder> {
        let held = held.map_err(|error| errors::folder(py, error))?;
        Ok(Folder { held })
    }
}

/// Held until it is let go.
#[pyclass(frozen, module = "tcpknee._core")]
pub struct Lock {
    held: Mutex<Option<folder::Lock>>,
}

#[pymethods]
impl Lock {
    fn release(&self) {
        let mut held = self.held.lock().unwrap_or_else(|error| error.into_inner());
        *held = None;
    }
}

/// See `knee_store::folder::allow_foreign`.
#[pyfunction]
pub fn allow_foreign_folders() {
    folder::allow_foreign();
}

/// See `knee_store::folder::check_readable`.
#[pyfunction]
pub fn check_readable(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    folder::check_readable(&path).map_err(|error| errors::folder(py, error))
}

/// The descriptor of a file that may be anybody's; see `knee_store::folder::open_readable`.
#[pyfunction]
pub fn open_readable(py: Python<'_>, path: PathBuf) -> PyResult<RawFd> {
    let file = folder::open_readable(&path).map_err(|error| errors::folder(py, error))?;
    Ok(file.into_raw_fd())
}

/// What the whole file of an unfinished segment would be, read from where it is.
#[pyclass(frozen, module = "tcpknee._core")]
pub struct Unfinished {
    content: segment::Content,
}

#[pymethods]
impl Unfinished {
    #[getter]
    fn rows(&self) -> i64 {
        self.content.rows
    }

    fn __len__(&self) -> usize {
        self.content.end as usize + self.content.footer.len()
    }

    /// At most so many bytes from that place on.
    fn read_at(&self, py: Python<'_>, bytes: usize, at: u64) -> PyResult<Vec<u8>> {
        let content = &self.content;
        py.detach(|| {
            let within = content.end.saturating_sub(at).min(bytes as u64) as usize;
            let mut found = vec![0; within];
            content.file.read_exact_at(&mut found, at)?;
            let from = at.saturating_sub(content.end) as usize;
            let rest = content.footer.get(from..).unwrap_or_default();
            found.extend(&rest[..rest.len().min(bytes - within)]);
            Ok(found)
        })
    }
}

/// Table, part, what can be read of it, and why nothing can.
type Found = (String, PathBuf, Option<Unfinished>, Option<String>);

/// The unfinished segments of a folder: table, part and what can be read of it,
/// or why nothing can. Nothing is changed.
#[pyfunction]
pub fn unfinished(py: Python<'_>, folder: PathBuf) -> PyResult<Vec<Found>> {
    let found = py
        .detach(|| segment::unfinished(&folder))
        .map_err(|error| errors::segment(py, error))?;
    let told = found.into_iter().map(|found| {
        let (content, why) = match found.content {
            Ok(content) => (content.map(|content| Unfinished { content }), None),
            Err(error) => (None, Some(error.to_string())),
        };
        (found.table, found.part, content, why)
    });
    Ok(told.collect())
}
