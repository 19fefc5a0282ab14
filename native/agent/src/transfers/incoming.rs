//! Bytes from the daemon to a file or a tar's unpacker.

use alloc::format;
use alloc::vec::Vec;

use sandlot_frames::{Kind, ReceiveWindow};

use crate::agent::Agent;
use crate::failure::{Failure, Outcome};
use crate::incoming::Broken;
use crate::limits::FILE_WINDOW_BYTES;
use crate::pack::{self, Fields};
use crate::sink::Sink;
use crate::streams::Stream;
use crate::sys::fd::{Fd, pipe, set_nonblocking};
use crate::sys::poller::Watched;
use crate::token::Token;

const CHANNEL: u8 = 0;

pub struct Incoming {
    pub(super) world: usize,
    pub(super) serial: u32,
    pub(super) target: Target,
    pub(super) window: ReceiveWindow,
    pub(super) written: u64,
    pub(super) ended: bool,
    /// Of a file, set when it is written: writing takes some bits away.
    pub(super) mode: Option<u32>,
}

pub enum Target {
    /// The keeper opens it; what came meanwhile, within the credit.
    Asked(Vec<u8>),
    File(Fd),
    Pipe(Sink),
}

impl Agent {
    pub fn request_write(&mut self, id: u32, fields: &Fields<'_>, payload: &[u8]) -> Outcome<()> {
        let world = self.open_world(fields)?;
        let mode = fields.optional_short("mode")?;
        let serial = self.ask(id, world, payload, Vec::new());
        let asked = Incoming::new(world, serial, Target::Asked(Vec::new()));
        let incoming = Incoming { mode, ..asked };
        self.streams.add(id, Stream::Incoming(incoming));
        Ok(())
    }

    pub fn request_piped_in(
        &mut self,
        id: u32,
        fields: &Fields<'_>,
        payload: &[u8],
    ) -> Outcome<()> {
        let world = self.open_world(fields)?;
        let (out, into) = pipe(0).map_err(|errno| Failure::system(errno, "pipe"))?;
        set_nonblocking(into.raw(), true);
        let serial = self.ask(id, world, payload, [out].into());
        let sink = Sink::new(Watched::new(into, Token::Stream(id).pack()));
        let incoming = Incoming::new(world, serial, Target::Pipe(sink));
        self.streams.add(id, Stream::Incoming(incoming));
        Ok(())
    }

    pub fn drop_incoming(&mut self, mut incoming: Incoming) {
        if let Target::Pipe(sink) = &mut incoming.target {
            sink.close(&self.poller);
        }
        self.cancel_job(incoming.world, incoming.serial);
    }

    pub fn on_incoming_data(&mut self, id: u32, bytes: &[u8]) -> Result<(), Broken> {
        let Some(Stream::Incoming(incoming)) = self.streams.get(id) else {
            return Ok(());
        };
        if incoming.ended || incoming.window.receive(bytes.len()).is_err() {
            return Err(Broken);
        }
        match &mut incoming.target {
            Target::Asked(early) => early.extend_from_slice(bytes),
            Target::File(_) => self.write_file(id, bytes),
            Target::Pipe(sink) => {
                let consumed = sink.push(bytes, &self.poller);
                self.consumed(id, consumed);
            }
        }
        Ok(())
    }

    pub fn on_incoming_end(&mut self, id: u32) {
        let Some(Stream::Incoming(incoming)) = self.streams.get(id) else {
            return;
        };
        incoming.ended = true;
        match &mut incoming.target {
            Target::Asked(_) => {}
            Target::File(_) => self.finish_write(id),
            Target::Pipe(sink) => sink.end(&self.poller),
        }
    }

    pub(super) fn write_file(&mut self, id: u32, mut bytes: &[u8]) {
        let size = bytes.len();
        let Some(Stream::Incoming(incoming)) = self.streams.get(id) else {
            return;
        };
        let Target::File(file) = &incoming.target else {
            return;
        };
        let world = incoming.world;
        while !bytes.is_empty() {
            match file.write(bytes) {
                Ok(count) if count > 0 => {
                    bytes = &bytes[count..];
                    incoming.written += count as u64;
                }
                failed => {
                    let errno = failed.err().unwrap_or(libc::ENOSPC);
                    let written = incoming.written;
                    if errno == libc::ENOSPC {
                        self.flag_disk(world, None);
                    }
                    self.close_stream(id);
                    self.fail(id, &Failure::system(errno, format!("write after {written} bytes")));
                    return;
                }
            }
        }
        self.consumed(id, size);
        self.finish_write(id);
    }

    fn finish_write(&mut self, id: u32) {
        if let Some(Stream::Incoming(incoming)) = self.streams.get(id)
            && incoming.ended
        {
            if let (Target::File(file), Some(mode)) = (&incoming.target, incoming.mode) {
                unsafe { libc::fchmod(file.raw(), mode & 0o7777) };
            }
            let written = incoming.written;
            self.succeed(id, pack::map().number("sizeBytes", written));
        }
    }

    /// An open file holds nothing back, so more may be under way.
    pub(super) fn widen(&mut self, id: u32) {
        if let Some(Stream::Incoming(incoming)) = self.streams.get(id) {
            let grant = incoming.window.widen(FILE_WINDOW_BYTES);
            self.connection.send(Kind::Credit, CHANNEL, id, &grant.to_le_bytes());
        }
    }

    pub(super) fn consumed(&mut self, id: u32, bytes: usize) {
        if let Some(Stream::Incoming(incoming)) = self.streams.get(id)
            && let Some(grant) = incoming.window.consume(bytes)
        {
            self.connection.send(Kind::Credit, CHANNEL, id, &grant.to_le_bytes());
        }
    }
}

impl Incoming {
    pub fn is_into(&self, world: usize) -> bool {
        self.world == world
    }

    /// An open file is written on without it.
    pub fn needs_keeper_of(&self, world: usize) -> bool {
        self.world == world && !matches!(self.target, Target::File(_))
    }

    fn new(world: usize, serial: u32, target: Target) -> Incoming {
        let window = ReceiveWindow::default();
        Incoming { world, serial, target, window, written: 0, ended: false, mode: None }
    }
}
