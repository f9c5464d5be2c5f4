//! Errors of the crates as the classes of `tcpknee.errors`.

use std::io;
use std::path::Path;

use knee_collect::KernelError;
use knee_engine::SimError;
use knee_lab::shell::Refused;
use knee_scenario::{ScenarioError, ScenarioErrors};
use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

/// A class of `tcpknee.errors` with its message.
fn front_error(py: Python<'_>, class: &str, message: String) -> PyErr {
    front_error_of(py, class, (message,))
}

/// A class of `tcpknee.errors` with its arguments.
fn front_error_of<'py>(py: Python<'py>, class: &str, arguments: impl PyCallArgs<'py>) -> PyErr {
    let made = py
        .import("tcpknee.errors")
        .and_then(|errors| errors.getattr(class))
        .and_then(|class| class.call1(arguments));
    match made {
        Ok(error) => PyErr::from_value(error),
        // The front is broken: its own error says more than ours would.
        Err(error) => error,
    }
}

/// With the line, the key and the sentence of each mistake, and what the front has to judge itself.
pub fn scenario(py: Python<'_>, errors: &ScenarioErrors) -> PyErr {
    let mistake = |error: &ScenarioError| {
        let said = error.problem.to_string();
        let key = error.problem.key().unwrap_or_default().to_owned();
        let bare = said.strip_prefix(&format!("{key}: ")).unwrap_or(&said);
        (error.line, key, bare.to_owned())
    };
    let mistakes: Vec<_> = errors.list.iter().map(mistake).collect();
    let expects: Vec<_> = (errors.expects.iter())
        .map(|expect| (expect.assert.clone(), expect.line))
        .collect();
    let published: Vec<_> = (errors.published.iter())
        .map(|one| {
            (
                one.value.clone(),
                one.figure.clone(),
                one.source.clone(),
                one.line,
            )
        })
        .collect();
    let arguments = (errors.to_string(), mistakes, expects, published);
    front_error_of(py, "ScenarioError", arguments)
}

pub fn usage(py: Python<'_>, message: &str) -> PyErr {
    front_error(py, "UsageError", message.to_owned())
}

pub fn engine(py: Python<'_>, error: &SimError) -> PyErr {
    front_error(py, "EngineError", error.to_string())
}

pub fn kernel(py: Python<'_>, error: &KernelError) -> PyErr {
    let class = match error {
        KernelError::Cancelled => "Cancelled",
        KernelError::Option { .. } | KernelError::Quantity { .. } | KernelError::Netns { .. } => {
            "UsageError"
        }
        error if error.is_unsupported() => "KernelUnsupported",
        _ => "EngineError",
    };
    front_error(py, class, error.to_string())
}

/// What cannot be done in a folder of segments.
pub fn segment(py: Python<'_>, error: knee_store::segment::Error) -> PyErr {
    front_error(py, "RunFolderError", error.to_string())
}

/// What cannot be written: an OSError where the system says so, as Python's own.
pub fn folder(py: Python<'_>, error: knee_store::folder::Error) -> PyErr {
    match error {
        knee_store::folder::Error::Io { path, source, .. } => file(&source, &path),
        refused => front_error(py, "RunFolderError", refused.to_string()),
    }
}

/// What cannot be written of a part or a table of parts: an OSError; what cannot be read: a RunFolderError.
pub fn parts(py: Python<'_>, error: knee_store::parts::Error) -> PyErr {
    use knee_store::parts::Error;
    match error {
        Error::Folder(error) => folder(py, error),
        Error::Write { path, source } => file(&source, &path),
        Error::Read { .. } => {
            let advice = "Remove it and what has the same beginning, and --resume again.";
            front_error(py, "RunFolderError", format!("{error}. {advice}"))
        }
    }
}

pub fn refused(py: Python<'_>, refused: Refused) -> PyErr {
    let class = if refused.unsupported {
        "KernelUnsupported"
    } else {
        "EngineError"
    };
    front_error(py, class, refused.message)
}

pub fn not_captured(py: Python<'_>) -> PyErr {
    let message = "this repetition was run without a capture; run the cell with capture=True";
    front_error(py, "EngineError", message.to_owned())
}

pub fn cancelled(py: Python<'_>) -> PyErr {
    front_error(
        py,
        "Cancelled",
        "the repetition was cancelled before its end".to_owned(),
    )
}

/// An OSError with its number, as Python's own.
pub fn system(error: &io::Error) -> PyErr {
    match error.raw_os_error() {
        Some(code) => PyOSError::new_err((code, knee_collect::text::reason(error))),
        None => PyOSError::new_err(error.to_string()),
    }
}

/// An OSError that names the file, as Python's own do.
pub fn file(error: &io::Error, path: &Path) -> PyErr {
    match error.raw_os_error() {
        Some(code) => {
            let text = knee_collect::text::reason(error);
            PyOSError::new_err((code, text, path.as_os_str().to_owned()))
        }
        None => PyOSError::new_err(format!("{}: {error}", path.display())),
    }
}
