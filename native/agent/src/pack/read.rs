use alloc::format;
use alloc::vec::Vec;

use crate::failure::{Failure, Outcome};

/// How deep a payload may nest; requests need 3.
const DEPTH_MAX: usize = 8;

#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    Nil,
    Flag(bool),
    Unsigned(u64),
    Negative(i64),
    Float(f64),
    /// bin or str: names and paths may be sent as either.
    Bytes(&'a [u8]),
    Array(Vec<Value<'a>>),
    Map(Vec<(Value<'a>, Value<'a>)>),
    /// An extension type; no request has one.
    Other,
}

impl<'a> Value<'a> {
    pub fn as_bytes(&self) -> Option<&'a [u8]> {
        match self {
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Whole numbers, however the sender wrote them.
    pub fn as_number(&self) -> Option<u64> {
        match *self {
            Value::Unsigned(number) => Some(number),
            Value::Float(number) if (0.0..9e15).contains(&number) => {
                let whole = number as u64;
                (whole as f64 == number).then_some(whole)
            }
            _ => None,
        }
    }

    pub fn as_array(&self) -> Option<&[Value<'a>]> {
        match self {
            Value::Array(values) => Some(values),
            _ => None,
        }
    }
}

/// The map of a request.
pub struct Fields<'a>(Vec<(Value<'a>, Value<'a>)>);

pub fn parse_map(payload: &[u8]) -> Outcome<Fields<'_>> {
    let mut reader = Reader { rest: payload };
    match reader.value(0) {
        Some(Value::Map(entries)) if reader.rest.is_empty() => Ok(Fields(entries)),
        _ => Err(Failure::invalid("the payload is not one MessagePack map")),
    }
}

impl<'a> Fields<'a> {
    #[allow(dead_code)]
    pub fn into_value(self) -> Value<'a> {
        Value::Map(self.0)
    }

    /// The value of a key; absent and nil are the same.
    pub fn find(&self, key: &str) -> Option<&Value<'a>> {
        let named = |entry: &&(Value<'a>, Value<'a>)| entry.0.as_bytes() == Some(key.as_bytes());
        self.0.iter().find(named).map(|(_, value)| value).filter(|value| **value != Value::Nil)
    }

    pub fn bytes(&self, key: &str) -> Outcome<&'a [u8]> {
        self.optional_bytes(key)?.ok_or_else(|| missing(key))
    }

    pub fn optional_bytes(&self, key: &str) -> Outcome<Option<&'a [u8]>> {
        self.optional(key, Value::as_bytes)
    }

    pub fn number(&self, key: &str) -> Outcome<u64> {
        self.optional_number(key)?.ok_or_else(|| missing(key))
    }

    pub fn optional_number(&self, key: &str) -> Outcome<Option<u64>> {
        self.optional(key, Value::as_number)
    }

    /// A number of 32 bits, as ids and modes are.
    pub fn optional_short(&self, key: &str) -> Outcome<Option<u32>> {
        let number = self.optional_number(key)?;
        number.map(|number| u32::try_from(number).map_err(|_| wrong(key))).transpose()
    }

    pub fn flag(&self, key: &str) -> Outcome<bool> {
        self.optional_flag(key)?.ok_or_else(|| missing(key))
    }

    pub fn optional_flag(&self, key: &str) -> Outcome<Option<bool>> {
        match self.find(key) {
            Some(Value::Flag(flag)) => Ok(Some(*flag)),
            Some(_) => Err(wrong(key)),
            None => Ok(None),
        }
    }

    pub fn array(&self, key: &str) -> Outcome<&[Value<'a>]> {
        match self.find(key) {
            Some(value) => value.as_array().ok_or_else(|| wrong(key)),
            None => Err(missing(key)),
        }
    }

    /// An array of byte strings.
    pub fn list(&self, key: &str) -> Outcome<Vec<&'a [u8]>> {
        self.array(key)?.iter().map(|value| value.as_bytes().ok_or_else(|| wrong(key))).collect()
    }

    fn optional<'s, T>(
        &'s self,
        key: &str,
        read: impl Fn(&'s Value<'a>) -> Option<T>,
    ) -> Outcome<Option<T>> {
        match self.find(key) {
            Some(value) => read(value).map(Some).ok_or_else(|| wrong(key)),
            None => Ok(None),
        }
    }
}

fn missing(key: &str) -> Failure {
    Failure::invalid(format!("{key} is missing"))
}

fn wrong(key: &str) -> Failure {
    Failure::invalid(format!("{key} has a wrong type or size"))
}

/// Reads never go past the payload, and each value costs at least one byte of it, so that
/// memory stays within a small multiple of a payload whatever the counts claim.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Option<Value<'a>> {
        if depth > DEPTH_MAX {
            return None;
        }
        Some(match self.byte()? {
            byte @ 0x00..=0x7f => Value::Unsigned(byte.into()),
            byte @ 0x80..=0x8f => self.map((byte & 0x0f).into(), depth)?,
            byte @ 0x90..=0x9f => self.array((byte & 0x0f).into(), depth)?,
            byte @ 0xa0..=0xbf => Value::Bytes(self.take((byte & 0x1f).into())?),
            0xc0 => Value::Nil,
            0xc2 => Value::Flag(false),
            0xc3 => Value::Flag(true),
            0xc4 | 0xd9 => self.bytes(1)?,
            0xc5 | 0xda => self.bytes(2)?,
            0xc6 | 0xdb => self.bytes(4)?,
            0xc7 => self.extension(1)?,
            0xc8 => self.extension(2)?,
            0xc9 => self.extension(4)?,
            0xca => Value::Float(f32::from_bits(self.number(4)? as u32).into()),
            0xcb => Value::Float(f64::from_bits(self.number(8)?)),
            0xcc => Value::Unsigned(self.number(1)?),
            0xcd => Value::Unsigned(self.number(2)?),
            0xce => Value::Unsigned(self.number(4)?),
            0xcf => Value::Unsigned(self.number(8)?),
            0xd0 => signed(self.number(1)? as i8 as i64),
            0xd1 => signed(self.number(2)? as i16 as i64),
            0xd2 => signed(self.number(4)? as i32 as i64),
            0xd3 => signed(self.number(8)? as i64),
            byte @ 0xd4..=0xd8 => {
                self.take(1 + (1 << (byte - 0xd4)))?;
                Value::Other
            }
            0xdc => {
                let count = self.number(2)?;
                self.array(count, depth)?
            }
            0xdd => {
                let count = self.number(4)?;
                self.array(count, depth)?
            }
            0xde => {
                let count = self.number(2)?;
                self.map(count, depth)?
            }
            0xdf => {
                let count = self.number(4)?;
                self.map(count, depth)?
            }
            byte @ 0xe0..=0xff => Value::Negative((byte as i8).into()),
            0xc1 => return None,
        })
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn number(&mut self, width: usize) -> Option<u64> {
        Some(self.take(width)?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn bytes(&mut self, width: usize) -> Option<Value<'a>> {
        let count = self.number(width)? as usize;
        Some(Value::Bytes(self.take(count)?))
    }

    fn extension(&mut self, width: usize) -> Option<Value<'a>> {
        let count = self.number(width)? as usize;
        self.take(count.checked_add(1)?)?;
        Some(Value::Other)
    }

    fn array(&mut self, count: u64, depth: usize) -> Option<Value<'a>> {
        let mut values = Vec::new();
        for _ in 0..count {
            values.push(self.value(depth + 1)?);
        }
        Some(Value::Array(values))
    }

    fn map(&mut self, count: u64, depth: usize) -> Option<Value<'a>> {
        let mut entries = Vec::new();
        for _ in 0..count {
            entries.push((self.value(depth + 1)?, self.value(depth + 1)?));
        }
        Some(Value::Map(entries))
    }
}

fn signed(number: i64) -> Value<'static> {
    u64::try_from(number).map_or(Value::Negative(number), Value::Unsigned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_write_a_number() {
        let ways: [&[u8]; 8] = [
            &[0x05],
            &[0xcc, 5],
            &[0xcd, 0, 5],
            &[0xce, 0, 0, 0, 5],
            &[0xcf, 0, 0, 0, 0, 0, 0, 0, 5],
            &[0xd0, 5],
            &[0xca, 0x40, 0xa0, 0, 0],
            &[0xcb, 0x40, 0x14, 0, 0, 0, 0, 0, 0],
        ];
        for way in ways {
            let payload = [&[0x81, 0xa1, b'n'], way].concat();
            assert_eq!(parse_map(&payload).unwrap().number("n"), Ok(5), "{way:?}");
        }
    }

    #[test]
    fn absent_nil_and_wrong() {
        let fields = parse_map(&[0x82, 0xa1, b'a', 0xc0, 0xa1, b'b', 0xc3]).unwrap();
        assert_eq!(fields.optional_number("a"), Ok(None));
        assert_eq!(fields.optional_number("c"), Ok(None));
        assert!(fields.number("a").is_err());
        assert!(fields.optional_number("b").is_err());
        assert_eq!(fields.flag("b"), Ok(true));
    }

    #[test]
    fn hostile_payloads() {
        let huge_count = [0xdf, 0xff, 0xff, 0xff, 0xff];
        let huge_bytes = [0x81, 0xa1, b'a', 0xc6, 0xff, 0xff, 0xff, 0xff, 0];
        let huge_extension = [0x81, 0xa1, b'a', 0xc9, 0xff, 0xff, 0xff, 0xff, 0];
        let deep = [0x91; 5000];
        let trailing = [0x80, 0x00];
        let payloads: [&[u8]; 8] = [
            &[],
            &[0xc1],
            &[0x81, 0xa1],
            &huge_count,
            &huge_bytes,
            &huge_extension,
            &deep,
            &trailing,
        ];
        for payload in payloads {
            assert!(parse_map(payload).is_err(), "{payload:?}");
        }
    }

    #[test]
    fn random_payloads_never_panic() {
        let mut state = 0x5eed_u64;
        for _ in 0..20_000 {
            let mut payload = Vec::new();
            for _ in 0..state % 60 {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                payload.push((state >> 33) as u8);
            }
            state = state.wrapping_add(1);
            let _ = parse_map(&payload);
        }
    }
}
