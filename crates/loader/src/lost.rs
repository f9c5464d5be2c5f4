//! What the programs of an object had no room for, as they count it.

use std::io;

use libbpf_rs::{MapCore, MapFlags, Object};

/// The section of the count.
const LOST: &str = ".bss.lost";

/// Records that found no room.
///
/// # Errors
/// The kernel does not tell, or the object has no such count, which is not the same as none lost.
pub fn lost(object: &Object) -> libbpf_rs::Result<u64> {
    let map = object.maps().find(|map| map.name() == LOST);
    let bytes = match map {
        Some(map) => map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY)?,
        None => None,
    };
    count(bytes.as_deref()).ok_or_else(|| {
        let what = format!("the object has no count of 64 bits in {LOST}");
        io::Error::new(io::ErrorKind::InvalidData, what).into()
    })
}

fn count(bytes: Option<&[u8]>) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_that_cannot_be_read_is_not_none_lost() {
        assert_eq!(count(Some(&7u64.to_ne_bytes())), Some(7));
        assert_eq!(count(Some(&[0; 4])), None);
        assert_eq!(count(None), None);
    }
}
