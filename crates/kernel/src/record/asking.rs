//! Asking the kernel for the sockets of a selection, dump after dump.

use std::io;

use super::options::Selection;
use crate::KernelError;
use crate::collect::sock_diag::{Diag, Dump, Extensions, Family, Filter, Question, SockDiag};

/// Asks in the namespace in which it was made.
pub struct Asking {
    diag: SockDiag,
    question: Question,
    filter: Filter,
    /// The kernel does not run the filter: it is judged here.
    filtered_here: bool,
}

impl Asking {
    /// # Errors
    /// sock_diag is not to be had.
    pub fn new(selection: &Selection, extensions: Extensions) -> Result<Asking, KernelError> {
        let diag = SockDiag::new().map_err(KernelError::system("reach sock_diag"))?;
        // Thousands of conditions are too many for the kernel.
        let compiled = selection.filter.compile();
        let filtered_here = compiled.is_err();
        let question = Question {
            bytecode: compiled.unwrap_or_default(),
            ..Question::of(Family::Both, selection.states, extensions)
        };
        Ok(Asking {
            diag,
            question,
            filter: selection.filter.clone(),
            filtered_here,
        })
    }

    /// Hands every socket that the filter holds for to `take`. A filter that this
    /// kernel does not know is judged here instead.
    ///
    /// # Errors
    /// The kernel refuses the dump.
    pub fn dump(&mut self, mut take: impl FnMut(Diag<'_>)) -> Result<Dump, KernelError> {
        let dump = match self.once(&mut take) {
            Err(error) if is_refused(&error) && !self.question.bytecode.is_empty() => {
                self.question.bytecode.clear();
                self.filtered_here = true;
                self.once(&mut take)
            }
            outcome => outcome,
        };
        dump.map_err(KernelError::system(
            "dump the sockets by sock_diag (CONFIG_INET_TCP_DIAG, module tcp_diag)",
        ))
    }

    fn once(&mut self, take: &mut impl FnMut(Diag<'_>)) -> io::Result<Dump> {
        let (filter, here) = (&self.filter, self.filtered_here);
        self.diag.dump(&self.question, |diag| {
            if !here || filter.matches(&diag) {
                take(diag);
            }
        })
    }
}

/// No operation of that kind (EINVAL), or not for this user (EPERM: marks).
fn is_refused(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EPERM))
}
