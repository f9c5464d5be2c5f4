//! What a file says besides its cells, for the front.

/// An `[[expect]]`: checked on a run's results by the front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expect {
    pub assert: String,
    /// Where it stands in the file, from 1.
    pub line: u32,
}

/// A `[[published]]`: a figure that others printed, shown beside ours by the
/// front and never checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// What of ours it stands beside: an expression as in [`Expect::assert`].
    pub value: String,
    /// As printed, with its unit.
    pub figure: String,
    /// Where it was printed, and how it was measured.
    pub source: String,
    /// Where `value` stands in the file, from 1.
    pub line: u32,
}
