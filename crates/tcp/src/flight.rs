//! What is outstanding, in numbers.

/// Segments by kind; an algorithm is shown all four.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Flight {
    pub packets_out: u32,
    pub sacked_out: u32,
    pub lost_out: u32,
    pub retrans_out: u32,
}

impl Flight {
    #[inline]
    pub fn packets_in_flight(&self) -> u32 {
        // Signed in Linux too: the counts may briefly cross.
        (self.packets_out + self.retrans_out).saturating_sub(self.left_out())
    }

    #[inline]
    pub fn left_out(&self) -> u32 {
        self.sacked_out + self.lost_out
    }
}
