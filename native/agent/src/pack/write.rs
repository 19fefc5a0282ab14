use alloc::vec::Vec;

/// A map that is written entry by entry; the count is filled in by `finish`.
#[derive(Default)]
pub struct Map {
    count: u32,
    body: Vec<u8>,
}

pub fn map() -> Map {
    Map::default()
}

impl Map {
    pub fn number(mut self, key: &str, value: u64) -> Map {
        self.key(key);
        unsigned(&mut self.body, value);
        self
    }

    pub fn optional_number(self, key: &str, value: Option<u64>) -> Map {
        match value {
            Some(value) => self.number(key, value),
            None => self,
        }
    }

    pub fn signed(mut self, key: &str, value: i64) -> Map {
        match u64::try_from(value) {
            Ok(value) => self.number(key, value),
            Err(_) => {
                self.key(key);
                self.body.push(0xd3);
                self.body.extend_from_slice(&value.to_be_bytes());
                self
            }
        }
    }

    pub fn flag(mut self, key: &str, value: bool) -> Map {
        self.key(key);
        self.body.push(if value { 0xc3 } else { 0xc2 });
        self
    }

    /// Must be UTF-8: a `str` is text to every decoder.
    pub fn text(mut self, key: &str, value: &str) -> Map {
        self.key(key);
        text(&mut self.body, value);
        self
    }

    pub fn bytes(mut self, key: &str, value: &[u8]) -> Map {
        self.key(key);
        bytes(&mut self.body, value);
        self
    }

    pub fn map(mut self, key: &str, value: Map) -> Map {
        self.key(key);
        self.body.extend(value.finish());
        self
    }

    /// An array of `count` values that `fill` appends.
    pub fn array(mut self, key: &str, count: usize, fill: impl FnOnce(&mut Vec<u8>)) -> Map {
        self.key(key);
        array(&mut self.body, count);
        fill(&mut self.body);
        self
    }

    pub fn finish(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.body.len() + 5);
        match self.count {
            count @ 0..=15 => out.push(0x80 | count as u8),
            count => {
                out.push(0xdf);
                out.extend_from_slice(&count.to_be_bytes());
            }
        }
        out.extend_from_slice(&self.body);
        out
    }

    fn key(&mut self, key: &str) {
        self.count += 1;
        text(&mut self.body, key);
    }
}

fn unsigned(out: &mut Vec<u8>, value: u64) {
    match value {
        0..=0x7f => out.push(value as u8),
        0x80..=0xff => out.extend_from_slice(&[0xcc, value as u8]),
        0x100..=0xffff => {
            out.push(0xcd);
            out.extend_from_slice(&(value as u16).to_be_bytes());
        }
        0x1_0000..=0xffff_ffff => {
            out.push(0xce);
            out.extend_from_slice(&(value as u32).to_be_bytes());
        }
        _ => {
            out.push(0xcf);
            out.extend_from_slice(&value.to_be_bytes());
        }
    }
}

pub fn text(out: &mut Vec<u8>, value: &str) {
    match value.len() {
        length @ 0..=31 => out.push(0xa0 | length as u8),
        length @ 32..=255 => out.extend_from_slice(&[0xd9, length as u8]),
        length => {
            out.push(0xdb);
            out.extend_from_slice(&(length as u32).to_be_bytes());
        }
    }
    out.extend_from_slice(value.as_bytes());
}

pub fn bytes(out: &mut Vec<u8>, value: &[u8]) {
    match value.len() {
        length @ 0..=255 => out.extend_from_slice(&[0xc4, length as u8]),
        length => {
            out.push(0xc6);
            out.extend_from_slice(&(length as u32).to_be_bytes());
        }
    }
    out.extend_from_slice(value);
}

fn array(out: &mut Vec<u8>, count: usize) {
    match count {
        0..=15 => out.push(0x90 | count as u8),
        _ => {
            out.push(0xdd);
            out.extend_from_slice(&(count as u32).to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse_map;
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let mut written = map()
            .number("small", 5)
            .number("large", 1 << 40)
            .signed("before", -3)
            .flag("yes", true)
            .text("text", "a text that is longer than thirty-one bytes")
            .bytes("raw", &[0xff; 300])
            .array("list", 20, |out| (0..20).for_each(|n| bytes(out, &[n])));
        for at in 0..20 {
            written = written.number(["x", "y"][at % 2], at as u64);
        }
        let payload = written.finish();
        let fields = parse_map(&payload).unwrap();
        assert_eq!(fields.number("small"), Ok(5));
        assert_eq!(fields.number("large"), Ok(1 << 40));
        assert_eq!(fields.flag("yes"), Ok(true));
        assert_eq!(fields.bytes("raw"), Ok(&[0xff; 300][..]));
        assert_eq!(fields.list("list").unwrap().len(), 20);
    }
}
