//! Releases of Linux.

use std::fmt;

/// A release of Linux: 6.12.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release(pub u16, pub u16);

impl Release {
    /// From here on the list says what changed.
    pub const OLDEST: Release = Release(3, 10);
    /// Up to here.
    pub const NEWEST: Release = Release(7, 2);

    /// That of `6.12`, `6.12.117`, `6.12.117-um`.
    pub fn of(text: &str) -> Option<Release> {
        let mut numbers = text.split(|c: char| !c.is_ascii_digit());
        let mut number = || numbers.next()?.parse().ok();
        Some(Release(number()?, number()?))
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_read_from_what_a_kernel_calls_itself() {
        for text in ["6.12", "6.12.117", "6.12-rc3", "6.12.117-um+"] {
            assert_eq!(Release::of(text), Some(Release(6, 12)), "{text}");
        }
        assert!(Release(5, 4) < Release(5, 10) && Release(5, 10) < Release(6, 1));
        for text in ["", "6", "linux", "6.x"] {
            assert_eq!(Release::of(text), None, "{text}");
        }
    }
}
