//! Text with a byte-order mark, as programs of Windows write it.

use std::io::{self, Read};

const READ_BYTES: usize = 1 << 16;

/// What `input` says, in UTF-8 without a mark. What begins without a mark stays.
pub fn utf8(mut input: Box<dyn Read>) -> io::Result<Box<dyn Read>> {
    let mut begin = [0; 3];
    let mut got = 0;
    while got < begin.len() {
        match input.read(&mut begin[got..]) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let whole = |from: usize| io::Cursor::new(begin[from..got].to_vec());
    let order: fn([u8; 2]) -> u16 = match begin[..got] {
        [0xef, 0xbb, 0xbf] => return Ok(input),
        [0xff, 0xfe, ..] => u16::from_le_bytes,
        [0xfe, 0xff, ..] => u16::from_be_bytes,
        _ => return Ok(Box::new(whole(0).chain(input))),
    };
    Ok(Box::new(Utf16 {
        input: Box::new(whole(2).chain(input)),
        order,
        odd: None,
        high: None,
        text: io::Cursor::default(),
    }))
}

/// UTF-16 read as UTF-8.
struct Utf16 {
    input: Box<dyn Read>,
    order: fn([u8; 2]) -> u16,
    /// The first byte of a unit whose second is to come.
    odd: Option<u8>,
    /// The first unit of a pair.
    high: Option<u16>,
    text: io::Cursor<Vec<u8>>,
}

impl Utf16 {
    /// Reads on; false: the end.
    fn more(&mut self) -> io::Result<bool> {
        let mut bytes = vec![0; READ_BYTES];
        let got = self.input.read(&mut bytes)?;
        bytes.truncate(got);
        if let Some(odd) = self.odd.take() {
            bytes.insert(0, odd);
        }
        if bytes.len() % 2 == 1 && got > 0 {
            self.odd = bytes.pop();
        }
        let pairs = bytes.chunks(2).map(|unit| match *unit {
            [a, b] => (self.order)([a, b]),
            // Half a unit at the end is no character.
            _ => 0xfffd,
        });
        let mut units: Vec<u16> = self.high.take().into_iter().chain(pairs).collect();
        if got > 0
            && units
                .last()
                .is_some_and(|unit| (0xd800..0xdc00).contains(unit))
        {
            self.high = units.pop();
        }
        self.text = io::Cursor::new(String::from_utf16_lossy(&units).into_bytes());
        Ok(got > 0)
    }
}

impl Read for Utf16 {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        loop {
            let got = self.text.read(to)?;
            if got > 0 || to.is_empty() || !self.more()? && self.text.get_ref().is_empty() {
                return Ok(got);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands out a byte at a time.
    struct Slow(Vec<u8>);

    impl Read for Slow {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                return Ok(0);
            }
            to[0] = self.0.remove(0);
            Ok(1)
        }
    }

    fn read(bytes: &[u8]) -> String {
        let mut text = String::new();
        let slow = utf8(Box::new(Slow(bytes.to_vec()))).unwrap();
        io::BufReader::new(slow).read_to_string(&mut text).unwrap();
        let mut fast = String::new();
        let input = utf8(Box::new(io::Cursor::new(bytes.to_vec()))).unwrap();
        io::BufReader::new(input).read_to_string(&mut fast).unwrap();
        assert_eq!(text, fast);
        text
    }

    #[test]
    fn each_byte_order_mark_gives_the_same_text() {
        let text = "a€😀\n";
        let units: Vec<u16> = [0xfeff].into_iter().chain(text.encode_utf16()).collect();
        let little: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let big: Vec<u8> = units.iter().flat_map(|unit| unit.to_be_bytes()).collect();
        assert_eq!(read(text.as_bytes()), text);
        assert_eq!(
            read(&["\u{feff}".as_bytes(), text.as_bytes()].concat()),
            text
        );
        assert_eq!([read(&little), read(&big)], [text, text]);
        // Cut off within a pair, and within a unit.
        assert_eq!(read(&little[..8]), "a€\u{fffd}");
        assert_eq!(read(&little[..5]), "a\u{fffd}");
        assert_eq!(
            ["", "\u{1f}"].map(|text| read(text.as_bytes())),
            ["", "\u{1f}"]
        );
    }
}
