//! Asking the kernel for the sockets of a selection, dump after dump.

use std::io;

use knee_collect::KernelError;
use knee_collect::sock_diag::{Diag, Dump, Extensions, Family, Filter, Question, SockDiag};

use super::options::Selection;

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
    /// sock_diag is not available, or marks are asked for and not told to this
    /// process.
    pub fn new(selection: &Selection, extensions: Extensions) -> Result<Asking, KernelError> {
        let mut diag = SockDiag::new().map_err(KernelError::system("reach sock_diag"))?;
        if selection.filter.has_mark() && !are_marks_told(&mut diag) {
            return Err(KernelError::MarksNotTold);
        }
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

/// Does the kernel let this process ask for marks? If not, no socket comes with
/// one, and a filter judged here would match nothing, without a word. It is asked
/// for sockets in no state: it checks the program and answers at once.
fn are_marks_told(diag: &mut SockDiag) -> bool {
    let mark = Filter::Mark { value: 0, mask: 0 };
    let question = Question {
        bytecode: mark.compile().expect("one condition is short"),
        ..Question::of(Family::Both, 0, Extensions::MEMORY)
    };
    let answer = diag.dump(&question, |_| {});
    !answer.is_err_and(|error| error.raw_os_error() == Some(libc::EPERM))
}

/// No operation of that kind: an older kernel.
fn is_refused(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EINVAL)
}
