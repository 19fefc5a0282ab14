use alloc::format;
use alloc::vec::Vec;

use super::{BLOCK_BYTES, Entry, Type};

/// One header block; `None` for the zeros that end an archive.
pub fn parse_header(block: &[u8; BLOCK_BYTES]) -> Result<Option<Entry>, &'static str> {
    if block.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    let sum = |at: usize| if (148..156).contains(&at) { u32::from(b' ') } else { block[at].into() };
    if number(&block[148..156]) != Some((0..BLOCK_BYTES).map(sum).sum::<u32>().into()) {
        return Err("a header with a wrong checksum");
    }
    let field = |from: usize, until: usize| number(&block[from..until]);
    let mut name = text(&block[..100]);
    // `ustar\0` has a prefix there; the old GNU format, `ustar `, has other things.
    if &block[257..263] == b"ustar\0" && block[345] != 0 {
        name = [&text(&block[345..500])[..], &name[..]].join(&b'/');
    }
    let kind = match Type::parse(block[156]) {
        Type::File if name.ends_with(b"/") => Type::Directory,
        kind => kind,
    };
    Ok(Some(Entry {
        kind,
        name,
        link: text(&block[157..257]),
        mode: field(100, 108).unwrap_or(0) as u32 & 0o7777,
        uid: field(108, 116).unwrap_or(0) as u32,
        gid: field(116, 124).unwrap_or(0) as u32,
        size: field(124, 136).ok_or("a header without a size")?,
        modified: (field(136, 148).unwrap_or(0) as i64, 0),
    }))
}

/// What pax records say about the entry that follows.
pub fn apply_pax(entry: &mut Entry, records: &[u8]) -> Result<(), &'static str> {
    let mut rest = records;
    while !rest.is_empty() {
        let space = rest.iter().position(|byte| *byte == b' ').ok_or("a broken pax record")?;
        let length = decimal(&rest[..space]).ok_or("a broken pax record")? as usize;
        if length <= space + 1 || length > rest.len() || rest[length - 1] != b'\n' {
            return Err("a broken pax record");
        }
        let record = &rest[space + 1..length - 1];
        rest = &rest[length..];
        let equals = record.iter().position(|byte| *byte == b'=').ok_or("a broken pax record")?;
        let (key, value) = (&record[..equals], &record[equals + 1..]);
        let count = || decimal(value).ok_or("a pax record with a wrong number");
        match key {
            b"path" => entry.name = value.to_vec(),
            b"linkpath" => entry.link = value.to_vec(),
            b"size" => entry.size = count()?,
            b"uid" => entry.uid = count()? as u32,
            b"gid" => entry.gid = count()? as u32,
            b"mtime" => entry.modified = time(value).ok_or("a pax record with a wrong time")?,
            key if key.starts_with(b"GNU.sparse.") => return Err("a sparse file"),
            _ => {}
        }
    }
    Ok(())
}

/// Octal digits, or the binary form of GNU for what doesn't fit.
fn number(field: &[u8]) -> Option<u64> {
    if field[0] == 0x80 {
        let digits = field.len().min(9) - 1;
        let (high, low) = field[1..].split_at(field.len() - 1 - digits);
        let small = high.iter().all(|byte| *byte == 0);
        return small.then(|| low.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)));
    }
    let field = text(field);
    let digits = core::str::from_utf8(&field).ok()?.trim_matches(' ');
    if digits.is_empty() { Some(0) } else { u64::from_str_radix(digits, 8).ok() }
}

fn text(field: &[u8]) -> Vec<u8> {
    field.iter().copied().take_while(|byte| *byte != 0).collect()
}

fn decimal(digits: &[u8]) -> Option<u64> {
    core::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?.parse().ok()
}

/// `seconds`, `seconds.fraction`, also below zero.
fn time(value: &[u8]) -> Option<(i64, i64)> {
    let value = core::str::from_utf8(value).ok()?;
    let (whole, fraction) = value.split_once('.').unwrap_or((value, ""));
    let seconds: i64 = whole.parse().ok()?;
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = format!("{:0<9}", &fraction[..fraction.len().min(9)]);
    let nanoseconds: i64 = digits.parse().ok()?;
    match whole.starts_with('-') && nanoseconds > 0 {
        true => Some((seconds - 1, 1_000_000_000 - nanoseconds)),
        false => Some((seconds, nanoseconds)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_numbers() {
        assert_eq!(number(&[0x80, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 2]), Some(1 << 56 | 2));
        assert_eq!(number(&[0x80, 0, 0, 0, 0, 0, 1, 1]), Some(257));
        assert_eq!(number(&[0x80, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), None);
        assert_eq!(number(b"0000644\0"), Some(0o644));
        assert_eq!(number(b"   644 \0"), Some(0o644));
        assert_eq!(number(b"00006x4\0"), None);
        assert_eq!(number(b"+0006 4\0"), None);
    }
}
