//! The `.groups` beside an unfinished segment.
//!
//! Besides that nothing panics: what is told of lies within the part, the groups
//! have the rows that the footer says, and the footer is one that readers take.

use bytes::Bytes;
use knee_store::segment::Groups;
use parquet::file::metadata::ParquetMetaDataReader;

use super::{BATCH_BYTES, choice, sample};
use crate::Target;

pub const TARGET: Target = Target {
    name: "groups",
    about: "what is beside an unfinished segment",
    seeds: &|| vec![sample("crates/fuzz/seeds/sockets.groups")],
    words: &[
        "PAR1",
        "ARROW:schema",
        "\x15\x02",
        "\x19\x1c",
        "\x16\x00",
        "\x7f\x7f\x7f\x7f\x0f",
    ],
    check: &check,
};

fn check(input: &[u8]) -> usize {
    let choice = choice(input);
    let part_bytes = match choice % 4 {
        0 => choice as u64 % 4096,
        _ => 1 << 40,
    };
    // Chance never finds a CRC.
    let framed = framed(input);
    for bytes in [input, &framed] {
        if let Some(groups) = Groups::read(bytes, part_bytes).expect("memory can be read") {
            hold(&groups, part_bytes);
        }
    }
    BATCH_BYTES + 2048 * input.len()
}

fn hold(groups: &Groups, part_bytes: u64) {
    assert!(groups.end <= part_bytes);
    let mut rows = 0;
    for group in groups.metadata.row_groups() {
        assert!(group.num_rows() >= 0);
        rows += group.num_rows();
        for column in group.columns() {
            let (from, bytes) = column.byte_range();
            assert!(from + bytes <= groups.end);
            assert!(column.file_path().is_none());
        }
    }
    assert_eq!(groups.rows(), rows);
    let footer = groups.footer().expect("what was read can be written");
    let body = footer.len() - 8;
    let again = ParquetMetaDataReader::decode_metadata(&Bytes::from(footer).slice(..body))
        .expect("what was written can be read");
    assert_eq!(again.file_metadata().num_rows(), rows);
    assert_eq!(again.num_row_groups(), groups.metadata.num_row_groups());
}

/// The input with the CRC that each of its records must have.
fn framed(input: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(input.len());
    let mut rest = input;
    while rest.len() > 8 {
        let told = u32::from_le_bytes(rest[..4].try_into().expect("four bytes"));
        let length = (told as usize).min(rest.len() - 8);
        let body = &rest[8..8 + length];
        out.extend((length as u32).to_le_bytes());
        out.extend(crc32fast::hash(body).to_le_bytes());
        out.extend(body);
        rest = &rest[8 + length..];
    }
    out.extend(rest);
    out
}
