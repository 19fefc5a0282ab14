//! The tar format, as far as both directions need it: ustar headers, pax records before them.

mod read;
mod write;

use alloc::vec::Vec;

pub use read::{apply_pax, parse_header};
pub use write::{write_header, write_header_with};

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
            Type::Device => b'3',
            Type::Directory => b'5',
            Type::Fifo => b'6',
            Type::Pax => b'x',
            Type::LongName => b'L',
            Type::LongLink => b'K',
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

/// How many zeros follow content of this size.
pub fn padding(size: u64) -> usize {
    (BLOCK_BYTES - (size % BLOCK_BYTES as u64) as usize) % BLOCK_BYTES
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
        let (mut at, mut pax, mut name, mut link) = (0, Vec::new(), None, None);
        loop {
            let block = out[at..at + BLOCK_BYTES].try_into().unwrap();
            let mut read = parse_header(block).unwrap().unwrap();
            let content = at + BLOCK_BYTES;
            let text = |size: u64| out[content..content + size as usize].to_vec();
            match read.kind {
                Type::Pax => pax = text(read.size),
                Type::LongName => name = Some(text(read.size - 1)),
                Type::LongLink => link = Some(text(read.size - 1)),
                _ => {
                    assert_eq!(content, out.len());
                    read.name = name.unwrap_or(read.name);
                    read.link = link.unwrap_or(read.link);
                    apply_pax(&mut read, &pax).unwrap();
                    return read;
                }
            }
            at = content + read.size as usize + padding(read.size);
            // What pax holds is text.
            assert!(core::str::from_utf8(&pax).is_ok());
        }
    }

    #[test]
    fn entries_come_back() {
        let cases = [
            entry(),
            Entry { name: [b'n'; 100].to_vec(), ..entry() },
            Entry { name: [b'n'; 101].to_vec(), ..entry() },
            Entry { name: [0xff; 3000].to_vec(), ..entry() },
            Entry { kind: Type::Symlink, link: [b'l'; 1000].to_vec(), size: 0, ..entry() },
            Entry { kind: Type::Symlink, link: [0xfe; 1000].to_vec(), size: 0, ..entry() },
            Entry { name: [0xff; 3000].to_vec(), modified: (5, 7), ..entry() },
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
}
