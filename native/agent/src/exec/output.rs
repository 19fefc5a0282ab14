//! From a command's pipes to what is kept, and from there to its reader.

use alloc::vec;

use sandlot_frames::Kind;

use super::kept::Next;
use super::{Exec, Mode, Reader, State};
use crate::agent::Agent;
use crate::clock::now_ms;
use crate::limits::{CHUNK_BYTES, LEFTOVER_PAUSE_MS};
use crate::pack;
use crate::streams::{Stream, Turn};
use crate::sys::poller::{Interest, Poller};

const CHANNELS: [u8; 2] = [1, 2];

impl Agent {
    /// A pipe has bytes, or has come to its end.
    pub fn on_output(&mut self, serial: u32, at: usize) {
        let position = self.reader_position(serial, at);
        let Some(exec) = self.execs.all.get_mut(&serial) else {
            return;
        };
        if exec.state == State::Ended {
            return throw_away(exec, at, &self.poller);
        }
        let most = exec.wanted(at, position);
        let output = &mut exec.outputs[at];
        let Some(pipe) = &mut output.pipe else {
            return;
        };
        let mut chunk = [0; CHUNK_BYTES];
        let read = if most == 0 { Err(libc::EAGAIN) } else { pipe.fd.read(&mut chunk[..most]) };
        match read {
            Ok(count) if count > 0 => {
                output.kept.push(&chunk[..count], &mut self.execs.budget);
                if let Some(unread) = &mut output.unread {
                    *unread -= count;
                }
            }
            Err(libc::EAGAIN) if most == 0 => {}
            Err(libc::EAGAIN) => {
                // Somebody else took what was there when it ended.
                output.unread = output.unread.map(|_| 0);
            }
            _ => {
                pipe.watch(&self.poller, Interest::NONE);
                output.pipe = None;
            }
        }
        exec.watch(at, position, &self.poller);
        let (flooded, world) = (exec.outputs[at].kept.lost() > 0, exec.world);
        if let Some(id) = exec.reader {
            self.streams.mark_ready(id);
        }
        if flooded {
            self.flag_output(world, serial);
        }
        self.settle_exec(serial);
    }

    /// One turn of a reader: one chunk of each channel.
    pub fn send_output(&mut self, id: u32) -> Turn {
        let Some(Stream::Exec(reader)) = self.streams.get(id) else {
            return Turn::Waits;
        };
        let Some(exec) = self.execs.all.get_mut(&reader.serial) else {
            return Turn::Waits;
        };
        if exec.mode == Mode::Buffered && exec.state != State::Ended {
            return Turn::Waits;
        }
        let mut turn = Turn::Waits;
        for (at, channel) in CHANNELS.into_iter().enumerate() {
            let kept = &mut exec.outputs[at].kept;
            match kept.next(reader.positions[at]) {
                Next::Bytes(bytes) => {
                    let count = reader.windows[at].take(bytes.len().min(CHUNK_BYTES));
                    if count > 0 {
                        self.connection.send(Kind::Data, channel, id, &bytes[..count]);
                        reader.positions[at] += count as u64;
                        kept.mark_seen(reader.positions[at]);
                        turn = Turn::More;
                    }
                }
                Next::Gap(offset) => {
                    let event = offset_event(channel, offset, offset - reader.positions[at]);
                    self.connection.send(Kind::Event, 0, id, &event.finish());
                    reader.positions[at] = offset;
                    turn = Turn::More;
                }
                Next::Nothing if exec.state == State::Ended && !reader.ended[at] => {
                    self.connection.send(Kind::End, channel, id, &[]);
                    reader.ended[at] = true;
                }
                Next::Nothing => {}
            }
            exec.watch(at, Some(reader.positions[at]), &self.poller);
        }
        if reader.ended == [true; 2] {
            let result = exec.result();
            exec.delivered = true;
            exec.reader = None;
            let (serial, forget) = (exec.serial, exec.forget);
            self.succeed(id, result);
            if forget {
                self.drop_exec(serial);
            }
            return Turn::Waits;
        }
        turn
    }

    /// The reader is gone; the command is no longer held up by it.
    pub fn detach_reader(&mut self, serial: u32, id: u32) {
        let Some(exec) = self.execs.get(serial) else {
            return;
        };
        if exec.reader == Some(id) {
            exec.reader = None;
        }
        // So that what each reader typed and nobody takes doesn't add up.
        if let (true, Some(keys)) = (exec.terminal, &mut exec.stdin) {
            keys.forget_waiting(&self.poller);
        }
        for at in 0..2 {
            if let Some(exec) = self.execs.all.get_mut(&serial)
                && exec.state != State::Starting
            {
                exec.watch(at, None, &self.poller);
            }
        }
    }

    /// Where its reader stands; `None` without one.
    pub(super) fn reader_position(&mut self, serial: u32, at: usize) -> Option<u64> {
        let id = self.execs.get(serial)?.reader?;
        match self.streams.get(id) {
            Some(Stream::Exec(Reader { positions, .. })) => Some(positions[at]),
            _ => None,
        }
    }
}

pub(super) fn offset_event(channel: u8, offset: u64, dropped: u64) -> pack::Map {
    pack::map()
        .text("kind", "offset")
        .number("channel", channel.into())
        .number("offset", offset)
        .number("droppedBytes", dropped)
}

impl Exec {
    /// How much of a pipe may be read now.
    fn wanted(&self, at: usize, position: Option<u64>) -> usize {
        let output = &self.outputs[at];
        let room = match (self.mode, position) {
            (Mode::Stream, Some(position)) => output.kept.room(position),
            _ => CHUNK_BYTES,
        };
        room.min(output.unread.unwrap_or(usize::MAX)).min(CHUNK_BYTES)
    }

    pub(super) fn watch(&mut self, at: usize, position: Option<u64>, poller: &Poller) {
        if self.state == State::Ended {
            return;
        }
        let interest = Interest::READ.if_true(self.wanted(at, position) > 0);
        if let Some(pipe) = &mut self.outputs[at].pipe {
            pipe.watch(poller, interest);
        }
    }
}

/// Bytes of processes that the command left behind.
fn throw_away(exec: &mut Exec, at: usize, poller: &Poller) {
    let Some(pipe) = &mut exec.outputs[at].pipe else {
        return;
    };
    pipe.watch(poller, Interest::NONE);
    match pipe.fd.read(&mut vec![0; CHUNK_BYTES]) {
        Ok(0) => exec.outputs[at].pipe = None,
        _ => exec.leftovers_at_ms = Some(now_ms() + LEFTOVER_PAUSE_MS),
    }
}
