use alloc::vec::Vec;

use crate::limits::{HEADER_BYTES, PAYLOAD_BYTES_MAX, SYNC_BYTES};

pub(crate) const START: u8 = 0xA7;
pub(crate) const END: u8 = 0xA8;

/// What a frame is; the numbers are those on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Hello = 0x01,
    Sync = 0x02,
    SyncAck = 0x03,
    Ping = 0x04,
    Pong = 0x05,
    Open = 0x10,
    Data = 0x11,
    Credit = 0x12,
    End = 0x13,
    Event = 0x14,
    Result = 0x15,
    Error = 0x16,
    Cancel = 0x17,
}

impl Kind {
    pub fn parse(byte: u8) -> Option<Kind> {
        Some(match byte {
            0x01 => Kind::Hello,
            0x02 => Kind::Sync,
            0x03 => Kind::SyncAck,
            0x04 => Kind::Ping,
            0x05 => Kind::Pong,
            0x10 => Kind::Open,
            0x11 => Kind::Data,
            0x12 => Kind::Credit,
            0x13 => Kind::End,
            0x14 => Kind::Event,
            0x15 => Kind::Result,
            0x16 => Kind::Error,
            0x17 => Kind::Cancel,
            _ => return None,
        })
    }

    /// Whether a payload of this many bytes can belong to this kind.
    pub fn takes(self, length: usize) -> bool {
        match self {
            Kind::Sync | Kind::SyncAck => length == SYNC_BYTES,
            Kind::Ping | Kind::Pong => length == 8,
            Kind::Credit => length == 4,
            Kind::End | Kind::Cancel => length == 0,
            _ => (1..=PAYLOAD_BYTES_MAX).contains(&length),
        }
    }
}

/// One whole, valid frame; the payload borrows from the decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    pub kind: Kind,
    pub channel: u8,
    pub stream: u32,
    pub payload: &'a [u8],
}

impl Frame<'_> {
    /// The grant of a credit frame, in bytes.
    pub fn credit_bytes(&self) -> u32 {
        self.payload.first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }
}

pub fn header(kind: Kind, channel: u8, stream: u32, length: usize) -> [u8; HEADER_BYTES] {
    debug_assert!(kind.takes(length));
    let mut bytes = [0; HEADER_BYTES];
    bytes[0] = START;
    bytes[1] = kind as u8;
    bytes[2] = channel;
    bytes[4..8].copy_from_slice(&stream.to_le_bytes());
    bytes[8..12].copy_from_slice(&(length as u32).to_le_bytes());
    bytes
}

/// Appends one frame to `out`. The caller keeps payloads within `PAYLOAD_BYTES_MAX`.
pub fn encode(out: &mut Vec<u8>, kind: Kind, channel: u8, stream: u32, payload: &[u8]) {
    out.reserve(HEADER_BYTES + payload.len() + 1);
    out.extend_from_slice(&header(kind, channel, stream, payload.len()));
    out.extend_from_slice(payload);
    out.push(END);
}
