//! Dumps the sockets of a selection, again and again.

use std::io;

use knee_collect::KernelError;
use knee_collect::sock_diag::{Diag, Dump, Extensions, Family, Filter, Question, SockDiag};

use super::options::Selection;

/// Dumps sockets of the network namespace in which it was made.
pub struct Dumper {
    diag: SockDiag,
    question: Question,
    filter: Filter,
    /// The kernel does not run the filter, so that it is run here.
    filtered_here: bool,
}

impl Dumper {
    /// # Errors
    /// sock_diag is not available, or marks are asked for and not told to this
    /// process.
    pub fn new(selection: &Selection, extensions: Extensions) -> Result<Dumper, KernelError> {
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
        Ok(Dumper {
            diag,
            question,
            filter: selection.filter.clone(),
            filtered_here,
        })
    }

    /// Hands every socket that passes the filter to `take`. A filter that this
    /// kernel does not know is run here instead.
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

/// Returns whether the kernel shows marks to this process. If not, sockets come
/// without one, and a filter run here would silently match nothing. The question
/// is for sockets in no state: the kernel checks the program and answers at once.
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
