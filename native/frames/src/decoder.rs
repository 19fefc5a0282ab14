use alloc::boxed::Box;
use alloc::vec;

use crate::frame::{END, Frame, Kind, START};
use crate::limits::{BUFFER_BYTES, HEADER_BYTES, PAYLOAD_BYTES_MAX};
use crate::sync::{Prey, SYNC_MAGIC, find};

/// Why bytes are not a frame. After it the decoder stands behind the offending byte,
/// or, where only the end of the frame was wrong, behind the whole frame: its payload is
/// foreign data and is never searched for a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    Start,
    Type,
    Flags,
    Length,
    End,
    Magic,
}

impl Malformed {
    pub fn as_str(self) -> &'static str {
        match self {
            Malformed::Start => "start",
            Malformed::Type => "type",
            Malformed::Flags => "flags",
            Malformed::Length => "length",
            Malformed::End => "end",
            Malformed::Magic => "magic",
        }
    }
}

/// Cuts a byte stream into frames. Holds two longest frames at most, whatever it is fed.
///
/// Read into `space()`, say how much with `filled()`, then take frames with `next()` until it
/// gives none. After `hunt()` everything is dropped until the prey, which is the next frame.
pub struct Decoder {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    prey: Option<Prey>,
}

impl Default for Decoder {
    fn default() -> Self {
        Decoder::new()
    }
}

impl Decoder {
    pub fn new() -> Self {
        Decoder { buffer: vec![0; BUFFER_BYTES].into_boxed_slice(), start: 0, end: 0, prey: None }
    }

    /// Free room for the next read; never empty after `next()` gave none.
    pub fn space(&mut self) -> &mut [u8] {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        &mut self.buffer[self.end..]
    }

    pub fn filled(&mut self, count: usize) {
        self.end = (self.end + count).min(self.buffer.len());
    }

    /// Forgets what was read and what was hunted.
    pub fn reset(&mut self) {
        (self.start, self.end, self.prey) = (0, 0, None);
    }

    /// Drops everything from here to the prey.
    pub fn hunt(&mut self, prey: Prey) {
        self.prey = Some(prey);
    }

    pub fn hunting(&self) -> bool {
        self.prey.is_some()
    }

    // Not an Iterator: a frame borrows the buffer.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Frame<'_>>, Malformed> {
        if let Some(prey) = self.prey {
            let (at, whole) = find(&prey, &self.buffer[self.start..self.end]);
            self.start += at;
            if !whole {
                return Ok(None);
            }
            self.prey = None;
        }
        self.skip_padding();
        let Some(head) = self.buffer[self.start..self.end].get(..HEADER_BYTES) else {
            return self.check_partial().map(|()| None);
        };
        let (kind, length) = match parse_header(head) {
            Ok(parsed) => parsed,
            Err(malformed) => {
                self.start += 1;
                return Err(malformed);
            }
        };
        let (channel, stream) = (head[2], le32(&head[4..8]));
        let body = self.start + HEADER_BYTES;
        if self.end < body + length + 1 {
            return Ok(None);
        }
        self.start = body + length + 1;
        if self.buffer[body + length] != END {
            return Err(Malformed::End);
        }
        let payload = &self.buffer[body..body + length];
        if matches!(kind, Kind::Sync | Kind::SyncAck) && !payload.starts_with(&SYNC_MAGIC) {
            return Err(Malformed::Magic);
        }
        Ok(Some(Frame { kind, channel, stream, payload }))
    }

    fn skip_padding(&mut self) {
        let waiting = &self.buffer[self.start..self.end];
        self.start += waiting.iter().position(|byte| *byte != 0).unwrap_or(waiting.len());
    }

    /// A header that can't become valid is refused as soon as its bad byte is there.
    fn check_partial(&mut self) -> Result<(), Malformed> {
        let head = &self.buffer[self.start..self.end];
        let malformed = match *head {
            [first, ..] if first != START => Malformed::Start,
            [_, kind, ..] if Kind::parse(kind).is_none() => Malformed::Type,
            [_, _, _, flags, ..] if flags != 0 => Malformed::Flags,
            _ => return Ok(()),
        };
        self.start += 1;
        Err(malformed)
    }
}

fn parse_header(head: &[u8]) -> Result<(Kind, usize), Malformed> {
    if head[0] != START {
        return Err(Malformed::Start);
    }
    let kind = Kind::parse(head[1]).ok_or(Malformed::Type)?;
    if head[3] != 0 {
        return Err(Malformed::Flags);
    }
    let length = le32(&head[8..12]) as usize;
    if length > PAYLOAD_BYTES_MAX || !kind.takes(length) {
        return Err(Malformed::Length);
    }
    Ok((kind, length))
}

fn le32(bytes: &[u8]) -> u32 {
    bytes.first_chunk::<4>().map_or(0, |four| u32::from_le_bytes(*four))
}
