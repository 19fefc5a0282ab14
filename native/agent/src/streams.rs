//! Streams of the present connection: one for each request under way.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use sandlot_frames::Kind;

use crate::agent::Agent;
use crate::exec::Reader;
use crate::failure::Failure;
use crate::incoming::Broken;
use crate::keeper::message::pack_failure;
use crate::pack::Map;
use crate::ports::Connecting;
use crate::relay::Relayed;
use crate::transfers::{Incoming, Outgoing};
use crate::worlds::Waiting;

pub enum Stream {
    /// Takes news of the worlds until it is cancelled.
    Watch,
    /// Waits for a world to be prepared, opened or ended.
    World(Waiting),
    /// Reads an exec's output and writes its stdin.
    Exec(Reader),
    /// Waits until so many worlds have their new identity.
    Renaming { left: usize },
    /// Waits for the keeper's answer.
    Asked { world: usize, serial: u32 },
    /// Bytes of a file, a list or a tar go out.
    Outgoing(Outgoing),
    /// Bytes of a file or a tar come in.
    Incoming(Incoming),
    /// A connection to a port inside is being made.
    Connecting(Connecting),
    /// Waits until something listens on a port.
    PortWait,
    /// A connection from inside to the relay, which the agent opened, or one of the daemon to a port inside.
    Relayed(Relayed),
}

#[derive(Default)]
pub struct Streams {
    open: BTreeMap<u32, Stream>,
    last: u32,
    /// The latest that the agent opened.
    last_own: u32,
    /// Streams that may have bytes to send.
    ready: BTreeSet<u32>,
    /// Where the last turn stopped, so that each stream comes by.
    turn: u32,
}

impl Streams {
    /// The daemon's ids are odd and rise.
    pub fn note_opened(&mut self, id: u32) -> Result<(), Broken> {
        if id.is_multiple_of(2) || id <= self.last {
            return Err(Broken);
        }
        self.last = id;
        Ok(())
    }

    pub fn was_opened(&self, id: u32) -> bool {
        id > 0 && id <= if id.is_multiple_of(2) { self.last_own } else { self.last }
    }

    /// Ids of the agent are even and rise; `None` when this connection has had them all.
    pub fn next_own(&mut self) -> Option<u32> {
        self.last_own = self.last_own.checked_add(2)?;
        Some(self.last_own)
    }

    /// A new connection counts anew.
    pub fn forget_ids(&mut self) {
        self.last = 0;
        self.last_own = 0;
    }

    pub fn is_open(&self, id: u32) -> bool {
        self.open.contains_key(&id)
    }

    pub fn count(&self) -> usize {
        self.open.len()
    }

    pub fn ids(&self) -> Vec<u32> {
        self.open.keys().copied().collect()
    }

    pub fn add(&mut self, id: u32, stream: Stream) {
        self.open.insert(id, stream);
    }

    pub fn get(&mut self, id: u32) -> Option<&mut Stream> {
        self.open.get_mut(&id)
    }

    pub fn remove(&mut self, id: u32) -> Option<Stream> {
        self.ready.remove(&id);
        self.open.remove(&id)
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, &Stream)> {
        self.open.iter().map(|(id, stream)| (*id, stream))
    }

    pub fn mark_ready(&mut self, id: u32) {
        self.ready.insert(id);
    }

    pub fn any_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The next stream whose turn it is; it marks itself ready again if it has more.
    pub fn take_ready(&mut self) -> Option<u32> {
        let next = self.ready.range(self.turn..).next().or(self.ready.first()).copied()?;
        self.ready.remove(&next);
        self.turn = next.wrapping_add(1);
        Some(next)
    }

    /// Time in which the sandbox stood still doesn't count.
    pub fn make_up_for(&mut self, lost_ms: u64) {
        for stream in self.open.values_mut() {
            if let Stream::World(Waiting { deadline_ms: Some(at), .. }) = stream {
                *at = at.saturating_add(lost_ms);
            }
        }
    }

    pub fn next_deadline_ms(&self) -> Option<u64> {
        let deadline = |stream: &Stream| match stream {
            Stream::World(waiting) => waiting.deadline_ms,
            _ => None,
        };
        self.open.values().filter_map(deadline).min()
    }
}

/// What became of the bytes that a stream may send in one turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// There may be more.
    More,
    /// It waits for credit, for bytes or for its end.
    Waits,
}

impl Agent {
    /// The request succeeded; the stream is over.
    pub fn succeed(&mut self, stream: u32, body: Map) {
        self.succeed_packed(stream, &body.finish());
    }

    pub fn succeed_packed(&mut self, stream: u32, body: &[u8]) {
        self.streams.remove(stream);
        self.connection.send(Kind::Result, 0, stream, body);
    }

    /// The request failed; the stream is over.
    pub fn fail(&mut self, stream: u32, failure: &Failure) {
        self.fail_packed(stream, &pack_failure(failure));
    }

    pub fn fail_packed(&mut self, stream: u32, body: &[u8]) {
        self.streams.remove(stream);
        self.connection.send(Kind::Error, 0, stream, body);
    }

    pub fn tell(&mut self, stream: u32, body: Map) {
        self.connection.send(Kind::Event, 0, stream, &body.finish());
    }

    /// Lets go of what a stream holds, without a word to the daemon.
    pub fn close_stream(&mut self, id: u32) {
        match self.streams.remove(id) {
            Some(Stream::Exec(reader)) => self.detach_reader(reader.serial, id),
            Some(Stream::Asked { world, serial }) => self.cancel_job(world, serial),
            Some(Stream::Outgoing(outgoing)) => self.drop_outgoing(outgoing),
            Some(Stream::Incoming(incoming)) => self.drop_incoming(incoming),
            Some(Stream::Connecting(connecting)) => self.drop_connecting(connecting),
            Some(Stream::PortWait) => self.forget_wait(id),
            Some(Stream::Relayed(relayed)) => self.drop_relayed(relayed),
            Some(Stream::Watch | Stream::World(_) | Stream::Renaming { .. }) | None => {}
        }
    }

    pub fn on_data(&mut self, id: u32, channel: u8, bytes: &[u8]) -> Result<(), Broken> {
        match self.streams.get(id) {
            Some(Stream::Exec(_)) if channel == 0 => self.on_stdin_data(id, bytes),
            Some(Stream::Incoming(_)) if channel == 0 => self.on_incoming_data(id, bytes),
            Some(Stream::Relayed(_)) if channel == 0 => self.on_relayed_data(id, bytes),
            _ => Err(Broken),
        }
    }

    pub fn on_end(&mut self, id: u32, channel: u8) -> Result<(), Broken> {
        match self.streams.get(id) {
            Some(Stream::Exec(reader)) if channel == 0 => {
                let serial = reader.serial;
                self.end_stdin(serial);
                Ok(())
            }
            Some(Stream::Incoming(_)) if channel == 0 => {
                self.on_incoming_end(id);
                Ok(())
            }
            Some(Stream::Relayed(_)) if channel == 0 => {
                self.on_relayed_end(id);
                Ok(())
            }
            _ => Err(Broken),
        }
    }

    /// Credit for a channel that sends nothing is harmless.
    pub fn on_credit(&mut self, id: u32, channel: u8, bytes: u32) -> Result<(), Broken> {
        match (self.streams.get(id), channel) {
            (Some(Stream::Exec(reader)), 1 | 2) => {
                reader.windows[usize::from(channel) - 1].grant(bytes);
            }
            (Some(Stream::Outgoing(outgoing)), 1) => outgoing.window.grant(bytes),
            (Some(Stream::Relayed(relayed)), 1) => relayed.window.grant(bytes),
            _ => return Ok(()),
        }
        self.streams.mark_ready(id);
        Ok(())
    }

    /// Fills the output in turns, until it is busy or nobody has more.
    pub fn move_bytes(&mut self) {
        while !self.connection.busy() {
            let Some(id) = self.streams.take_ready() else {
                break;
            };
            let turn = match self.streams.get(id) {
                Some(Stream::Exec(_)) => self.send_output(id),
                Some(Stream::Outgoing(_)) => self.send_outgoing(id),
                Some(Stream::Relayed(_)) => self.send_relayed(id),
                _ => Turn::Waits,
            };
            if turn == Turn::More && self.streams.is_open(id) {
                self.streams.mark_ready(id);
            }
        }
    }
}
