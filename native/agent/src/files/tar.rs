//! The tar format, as far as both directions need it: ustar headers, pax records before them.

use alloc::format;
use alloc::vec::Vec;

pub const BLOCK_BYTES: usize = 512;
/// A pax header or a long name is at most this long: more is an attack on memory.
pub const EXTENSION_BYTES_MAX: u64 = 64 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    File,
    HardLink,
    Symlink,
    Directory,
    Fifo,
    Device,
    /// Attributes of the next entry.
    Pax,
    /// Attributes of all entries; nothing here needs them.
    PaxGlobal,
    LongName,
    LongLink,
    Unknown,
}

impl Type {
    fn parse(flag: u8) -> Type {
        match flag {
            b'0' | 0 | b'7' => Type::File,
            b'1' => Type::HardLink,
            b'2' => Type::Symlink,
            b'3' | b'4' => Type::Device,
            b'5' => Type::Directory,
            b'6' => Type::Fifo,
            b'x' => Type::Pax,
            b'g' => Type::PaxGlobal,
            b'L' => Type::LongName,
            b'K' => Type::LongLink,
            _ => Type::Unknown,
        }
    }

    fn flag(self) -> u8 {
        match self {
            Type::HardLink => b'1',
            Type::Symlink => b'2',
            Type::Directory => b'5',
            Type::Fifo => b'6',
            Type::Pax => b'x',
            _ => b'0',
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub kind: Type,
    pub name: Vec<u8>,
    pub link: Vec<u8>,
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub size: u64,
    /// Seconds and nanoseconds since 1970.
    pub modified: (i64, i64),
}

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

/// The header of an entry, with what doesn't fit into ustar in a pax header before it.
pub fn write_header(out: &mut Vec<u8>, entry: &Entry) {
    const LARGEST_OCTAL: u64 = (1 << 33) - 1;
    const LARGEST_ID: u32 = (1 << 21) - 1;
    let mut records = Vec::new();
    if entry.name.len() > 100 {
        record(&mut records, "path", &entry.name);
    }
    if entry.link.len() > 100 {
        record(&mut records, "linkpath", &entry.link);
    }
    if entry.size > LARGEST_OCTAL {
        record(&mut records, "size", format!("{}", entry.size).as_bytes());
    }
    for (key, id) in [("uid", entry.uid), ("gid", entry.gid)] {
        if id > LARGEST_ID {
            record(&mut records, key, format!("{id}").as_bytes());
        }
    }
    let (seconds, nanoseconds) = entry.modified;
    if nanoseconds != 0 || !(0..=LARGEST_OCTAL as i64).contains(&seconds) {
        record(&mut records, "mtime", decimal_time(seconds, nanoseconds).as_bytes());
    }
    if !records.is_empty() {
        let header = Entry {
            kind: Type::Pax,
            name: b"pax".to_vec(),
            link: Vec::new(),
            size: records.len() as u64,
            mode: 0o644,
            ..entry.clone()
        };
        write_block(out, &header);
        out.extend_from_slice(&records);
        out.resize(out.len().next_multiple_of(BLOCK_BYTES), 0);
    }
    write_block(out, entry);
}

/// How many zeros follow content of this size.
pub fn padding(size: u64) -> usize {
    (BLOCK_BYTES - (size % BLOCK_BYTES as u64) as usize) % BLOCK_BYTES
}

fn write_block(out: &mut Vec<u8>, entry: &Entry) {
    let mut block = [0; BLOCK_BYTES];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    let octal = |value: u64, digits: usize| {
        let largest = (1u64 << (3 * digits)) - 1;
        format!("{:0digits$o}", if value > largest { 0 } else { value })
    };
    put(0, &entry.name[..entry.name.len().min(100)]);
    put(100, octal(entry.mode.into(), 7).as_bytes());
    put(108, octal(entry.uid.into(), 7).as_bytes());
    put(116, octal(entry.gid.into(), 7).as_bytes());
    put(124, octal(entry.size, 11).as_bytes());
    put(136, octal(entry.modified.0.max(0) as u64, 11).as_bytes());
    put(148, b"        ");
    put(156, &[entry.kind.flag()]);
    put(157, &entry.link[..entry.link.len().min(100)]);
    put(257, b"ustar\x0000");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    out.extend_from_slice(&block);
}

/// `length key=value\n`, where the length counts itself.
fn record(out: &mut Vec<u8>, key: &str, value: &[u8]) {
    let rest = key.len() + value.len() + 3;
    let mut length = rest + 1;
    while length != rest + format!("{length}").len() {
        length = rest + format!("{length}").len();
    }
    out.extend_from_slice(format!("{length} {key}=").as_bytes());
    out.extend_from_slice(value);
    out.push(b'\n');
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

fn decimal_time(seconds: i64, nanoseconds: i64) -> alloc::string::String {
    match seconds < 0 && nanoseconds > 0 {
        true => format!("-{}.{:09}", -(seconds + 1), 1_000_000_000 - nanoseconds),
        false => format!("{seconds}.{nanoseconds:09}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry {
        Entry {
            kind: Type::File,
            name: b"a/b".to_vec(),
            link: Vec::new(),
            mode: 0o4755,
            uid: 1000,
            gid: 50,
            size: 12,
            modified: (1_700_000_000, 0),
        }
    }

    /// Reads back what was written.
    fn round(entry: &Entry) -> Entry {
        let mut out = Vec::new();
        write_header(&mut out, entry);
        let block =
            |at: usize| -> &[u8; BLOCK_BYTES] { out[at..at + BLOCK_BYTES].try_into().unwrap() };
        let first = parse_header(block(0)).unwrap().unwrap();
        if first.kind != Type::Pax {
            assert_eq!(out.len(), BLOCK_BYTES);
            return first;
        }
        let last = out.len() - BLOCK_BYTES;
        let mut read = parse_header(block(last)).unwrap().unwrap();
        apply_pax(&mut read, &out[BLOCK_BYTES..BLOCK_BYTES + first.size as usize]).unwrap();
        read
    }

    #[test]
    fn entries_come_back() {
        let cases = [
            entry(),
            Entry { name: [b'n'; 100].to_vec(), ..entry() },
            Entry { name: [b'n'; 101].to_vec(), ..entry() },
            Entry { name: [0xff; 3000].to_vec(), ..entry() },
            Entry { kind: Type::Symlink, link: [b'l'; 1000].to_vec(), size: 0, ..entry() },
            Entry { kind: Type::Directory, name: b"d/".to_vec(), size: 0, ..entry() },
            Entry { kind: Type::Fifo, size: 0, ..entry() },
            Entry { size: 1 << 40, ..entry() },
            Entry { uid: u32::MAX - 1, gid: 1 << 30, ..entry() },
            Entry { modified: (5, 7), ..entry() },
            Entry { modified: (-5, 0), ..entry() },
            Entry { modified: (-5, 250_000_000), ..entry() },
            Entry { modified: (-1, 1), ..entry() },
        ];
        for case in cases {
            assert_eq!(round(&case), case);
        }
    }

    #[test]
    fn hostile_headers() {
        let mut out = Vec::new();
        write_header(&mut out, &entry());
        let good: [u8; BLOCK_BYTES] = out[..].try_into().unwrap();
        assert!(parse_header(&good).is_ok());
        let mut changed = good;
        changed[0] ^= 1;
        assert!(parse_header(&changed).is_err());
        assert_eq!(parse_header(&[0; BLOCK_BYTES]), Ok(None));
        assert!(parse_header(&[0xff; BLOCK_BYTES]).is_err());
    }

    #[test]
    fn hostile_pax() {
        let bad: [&[u8]; 12] = [
            b"x",
            b"5 a=b",
            b"99 path=a\n",
            b"0 path=a\n",
            b"1 path=a\n",
            b"18446744073709551615 path=a\n",
            b"9 path:a\n",
            b"9 size=x\n",
            b"10 size=-1\n",
            b"13 mtime=1.x\n",
            b"12 mtime=a\n\n",
            b"23 GNU.sparse.major=1\n\n",
        ];
        for records in bad {
            assert!(apply_pax(&mut entry(), records).is_err(), "{records:?}");
        }
        let mut read = entry();
        apply_pax(&mut read, b"9 path=a\n15 comment=xyz\n").unwrap();
        assert_eq!(read.name, b"a");
    }

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
