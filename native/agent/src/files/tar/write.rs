use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{BLOCK_BYTES, Entry, Type};

/// The header of an entry, with what doesn't fit into ustar before it: in a pax header, whose text is
/// UTF-8, and long names that are not UTF-8 in headers of their own.
pub fn write_header(out: &mut Vec<u8>, entry: &Entry) {
    write_header_with(out, entry, &[]);
}

/// As above, with more records in the pax header.
pub fn write_header_with(out: &mut Vec<u8>, entry: &Entry, more: &[(String, Vec<u8>)]) {
    const LARGEST_OCTAL: u64 = (1 << 33) - 1;
    const LARGEST_ID: u32 = (1 << 21) - 1;
    let mut records = Vec::new();
    for (key, value) in more {
        record(&mut records, key, value);
    }
    let long = [(&entry.name, "path", Type::LongName), (&entry.link, "linkpath", Type::LongLink)];
    for (name, key, kind) in long {
        if name.len() <= NAME_BYTES {
            continue;
        }
        match core::str::from_utf8(name) {
            Ok(_) => record(&mut records, key, name),
            Err(_) => write_extension(out, entry, kind, &[name, &b"\0"[..]].concat()),
        }
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
        write_extension(out, entry, Type::Pax, &records);
    }
    write_block(out, entry);
}

const NAME_BYTES: usize = 100;

/// Says more about the entry that follows.
fn write_extension(out: &mut Vec<u8>, entry: &Entry, kind: Type, content: &[u8]) {
    let header = Entry {
        kind,
        name: b"more".to_vec(),
        link: Vec::new(),
        size: content.len() as u64,
        mode: 0o644,
        ..entry.clone()
    };
    write_block(out, &header);
    out.extend_from_slice(content);
    out.resize(out.len().next_multiple_of(BLOCK_BYTES), 0);
}

fn write_block(out: &mut Vec<u8>, entry: &Entry) {
    let mut block = [0; BLOCK_BYTES];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    let octal = |value: u64, digits: usize| {
        let largest = (1u64 << (3 * digits)) - 1;
        format!("{:0digits$o}", if value > largest { 0 } else { value })
    };
    put(0, &entry.name[..entry.name.len().min(NAME_BYTES)]);
    put(100, octal(entry.mode.into(), 7).as_bytes());
    put(108, octal(entry.uid.into(), 7).as_bytes());
    put(116, octal(entry.gid.into(), 7).as_bytes());
    put(124, octal(entry.size, 11).as_bytes());
    put(136, octal(entry.modified.0.max(0) as u64, 11).as_bytes());
    put(148, b"        ");
    put(156, &[entry.kind.flag()]);
    put(157, &entry.link[..entry.link.len().min(NAME_BYTES)]);
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

fn decimal_time(seconds: i64, nanoseconds: i64) -> alloc::string::String {
    match seconds < 0 && nanoseconds > 0 {
        true => format!("-{}.{:09}", -(seconds + 1), 1_000_000_000 - nanoseconds),
        false => format!("{seconds}.{nanoseconds:09}"),
    }
}
