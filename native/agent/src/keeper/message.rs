//! What agent and keeper say to one another: `tag, serial, length of the extras, extras, body`.
//! A request's payload travels on unchanged as the body; extras are what the agent adds to it.

use alloc::vec::Vec;

use crate::failure::{Code, Failure};
use crate::pack;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Tag {
    // Agent to keeper.
    Open = b'O',
    Spawn = b'S',
    File = b'F',
    Cancel = b'C',
    Finish = b'Q',
    Rename = b'R',
    // Keeper to agent.
    Prepared = b'p',
    Opened = b'o',
    Spawned = b's',
    Exited = b'x',
    InitEnded = b'i',
    Finished = b'q',
    Done = b'd',
    Failed = b'f',
}

impl Tag {
    fn parse(byte: u8) -> Option<Tag> {
        const ALL: [Tag; 14] = [
            Tag::Open,
            Tag::Spawn,
            Tag::File,
            Tag::Cancel,
            Tag::Finish,
            Tag::Rename,
            Tag::Prepared,
            Tag::Opened,
            Tag::Spawned,
            Tag::Exited,
            Tag::InitEnded,
            Tag::Finished,
            Tag::Done,
            Tag::Failed,
        ];
        ALL.into_iter().find(|tag| *tag as u8 == byte)
    }
}

pub struct Message<'a> {
    pub tag: Tag,
    /// Whose matter it is: a number that the agent chose and that is never used again.
    pub serial: u32,
    pub extras: &'a [u8],
    pub body: &'a [u8],
}

impl<'a> Message<'a> {
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(9 + self.extras.len() + self.body.len());
        out.push(self.tag as u8);
        out.extend_from_slice(&self.serial.to_le_bytes());
        out.extend_from_slice(&(self.extras.len() as u32).to_le_bytes());
        out.extend_from_slice(self.extras);
        out.extend_from_slice(self.body);
        out
    }

    pub fn parse(bytes: &'a [u8]) -> Option<Message<'a>> {
        let tag = Tag::parse(*bytes.first()?)?;
        let serial = u32::from_le_bytes(bytes.get(1..5)?.try_into().ok()?);
        let length = u32::from_le_bytes(bytes.get(5..9)?.try_into().ok()?) as usize;
        let (extras, body) = bytes.get(9..)?.split_at_checked(length)?;
        Some(Message { tag, serial, extras, body })
    }
}

/// A failure as the payload of an `error` frame.
pub fn pack_failure(failure: &Failure) -> Vec<u8> {
    let mut map = pack::map().text("code", failure.code.as_str()).text("message", &failure.message);
    if failure.errno != 0 {
        map = map.number("errno", failure.errno as u64);
    }
    map.finish()
}

pub fn failure_code(payload: &[u8]) -> Code {
    let parsed = pack::parse_map(payload);
    let code = parsed.as_ref().ok().and_then(|fields| fields.bytes("code").ok());
    code.map_or(Code::Io, Code::parse)
}
