//! Requests that a keeper answers, and the bytes of files, lists and tars that go with them.

mod incoming;
mod outgoing;

use alloc::vec::Vec;

use sandlot_frames::Kind;

use crate::agent::Agent;
use crate::failure::{Code, Outcome};
use crate::keeper::message::{Tag, failure_code};
use crate::pack::{self, Fields};
use crate::streams::Stream;
use crate::sys::fd::Fd;
use crate::sys::poller::{Interest, Watched};
use crate::token::Token;
pub use incoming::Incoming;
use incoming::Target;
pub use outgoing::Outgoing;
use outgoing::Source;

impl Agent {
    pub fn request_answer(&mut self, id: u32, fields: &Fields<'_>, payload: &[u8]) -> Outcome<()> {
        let reads = matches!(fields.bytes("op")?, b"file.stat" | b"process.list");
        let world = if reads { self.world_with_files(fields) } else { self.open_world(fields) }?;
        let serial = self.ask(id, world, payload, Vec::new());
        self.streams.add(id, Stream::Asked { world, serial });
        Ok(())
    }

    pub(super) fn ask(
        &mut self,
        id: u32,
        world: usize,
        payload: &[u8],
        descriptors: Vec<Fd>,
    ) -> u32 {
        let serial = self.next_serial();
        self.waiting.insert(serial, id);
        self.say_to_keeper(world, Tag::File, serial, &[], payload, descriptors);
        serial
    }

    pub fn cancel_job(&mut self, world: usize, serial: u32) {
        if self.waiting.remove(&serial).is_some() {
            self.say_to_keeper(world, Tag::Cancel, serial, &[], &[], Vec::new());
        }
    }

    /// The keeper's answer to a file request: it is done, or open for its bytes.
    pub fn on_done(&mut self, serial: u32, body: &[u8], descriptor: Option<Fd>) {
        let Some(&id) = self.waiting.get(&serial) else {
            return;
        };
        match (self.streams.get(id), descriptor) {
            (Some(Stream::Outgoing(outgoing)), Some(file)) => {
                outgoing.source =
                    if pack::parse_map(body).is_ok_and(|map| map.find("piped").is_some()) {
                        Source::Pipe(Watched::new(file, Token::Stream(id).pack()))
                    } else {
                        self.waiting.remove(&serial);
                        Source::File(file)
                    };
                self.connection.send(Kind::Event, 0, id, body);
                self.streams.mark_ready(id);
            }
            (Some(Stream::Outgoing(outgoing)), None) => {
                outgoing.result = Some(body.to_vec());
                self.waiting.remove(&serial);
                self.streams.mark_ready(id);
            }
            (Some(Stream::Incoming(incoming)), Some(file)) => {
                self.waiting.remove(&serial);
                let target = core::mem::replace(&mut incoming.target, Target::File(file));
                if let Target::Asked(early) = target {
                    self.widen(id);
                    self.write_file(id, &early);
                }
            }
            (Some(Stream::Renaming { left: left @ 2.. }), _) => {
                self.waiting.remove(&serial);
                *left -= 1;
            }
            (Some(_), _) => {
                self.waiting.remove(&serial);
                self.succeed_packed(id, body);
            }
            (None, _) => {
                self.waiting.remove(&serial);
            }
        }
    }

    pub fn on_failed(&mut self, world: usize, serial: u32, body: &[u8]) {
        if failure_code(body) == Code::NoSpace {
            self.flag_disk(world, None);
        }
        if let Some(id) = self.waiting.remove(&serial) {
            self.close_stream(id);
            self.fail_packed(id, body);
        }
    }

    /// A pipe of a stream is ready.
    pub fn on_stream(&mut self, id: u32) {
        match self.streams.get(id) {
            Some(Stream::Outgoing(outgoing)) => {
                if let Source::Pipe(pipe) = &mut outgoing.source {
                    pipe.watch(&self.poller, Interest::NONE);
                }
                self.streams.mark_ready(id);
            }
            Some(Stream::Incoming(incoming)) => {
                if let Target::Pipe(sink) = &mut incoming.target {
                    let consumed = sink.flush(&self.poller);
                    self.consumed(id, consumed);
                }
            }
            Some(Stream::Connecting(_)) => self.on_connecting(id),
            Some(Stream::Relayed(_)) => self.on_relayed_ready(id),
            _ => {}
        }
    }
}
