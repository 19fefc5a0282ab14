//! What listens, by the kernel's own tables: nobody is connected to for it.

use alloc::vec::Vec;

use crate::limits::{LISTENERS_MAX, SOCKET_TABLE_BYTES_MAX};
use crate::sys::fd::read_file;

/// A listener: its port, and its address as bytes in network order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listener {
    pub port: u16,
    pub address: Vec<u8>,
}

const TABLES: [&[u8]; 2] = [b"/proc/net/tcp", b"/proc/net/tcp6"];
const STATE_LISTEN: &[u8] = b"0A";

/// Each once, in the order of their ports. Of a table that is too long the beginning counts.
pub fn listeners() -> Result<Vec<Listener>, i32> {
    let mut found = Vec::new();
    for (at, path) in TABLES.into_iter().enumerate() {
        match read_file(path, SOCKET_TABLE_BYTES_MAX) {
            Ok(table) => found.extend(table.split(|byte| *byte == b'\n').filter_map(parse)),
            // A sandbox without that family.
            Err(libc::ENOENT) if at > 0 => {}
            Err(errno) => return Err(errno),
        }
    }
    found.sort();
    found.dedup();
    found.truncate(LISTENERS_MAX);
    Ok(found)
}

/// `0: 0100007F:1F90 00000000:0000 0A …`: serial, own address, the peer's, state.
fn parse(line: &[u8]) -> Option<Listener> {
    let mut fields = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()).skip(1);
    let own = fields.next()?;
    if fields.nth(1)? != STATE_LISTEN {
        return None;
    }
    let colon = own.iter().position(|byte| *byte == b':')?;
    let digits = own[..colon].iter().map(|digit| (*digit as char).to_digit(16));
    let digits: Vec<u32> = digits.collect::<Option<_>>()?;
    let mut address: Vec<u8> = digits.chunks(2).map(|two| as_number(two) as u8).collect();
    if !matches!(address.len(), 4 | 16) {
        return None;
    }
    // Each four bytes stand there as a number of this machine.
    for word in address.chunks_mut(4) {
        word.reverse();
    }
    let port: Option<Vec<u32>> =
        own[colon + 1..].iter().map(|digit| (*digit as char).to_digit(16)).collect();
    Some(Listener { port: u16::try_from(as_number(&port?)).ok()?, address })
}

fn as_number(digits: &[u32]) -> u32 {
    digits.iter().fold(0, |number, digit| number << 4 | digit)
}
