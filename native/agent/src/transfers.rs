//! Requests that a keeper answers, and the bytes of files, lists and tars that go with them.

use alloc::format;
use alloc::vec::Vec;

use sandlot_frames::{Kind, ReceiveWindow, SendWindow};

use crate::agent::Agent;
use crate::failure::{Code, Failure, Outcome};
use crate::incoming::Broken;
use crate::keeper::message::{Tag, failure_code};
use crate::limits::CHUNK_BYTES;
use crate::pack::{self, Fields};
use crate::sink::Sink;
use crate::streams::{Stream, Turn};
use crate::sys::fd::{Fd, pipe, set_nonblocking};
use crate::sys::poller::{Interest, Watched};
use crate::token::Token;

const OUT: u8 = 1;
const IN: u8 = 0;

pub struct Outgoing {
    world: usize,
    serial: u32,
    source: Source,
    pub window: SendWindow,
    /// What the request wants at most.
    left: u64,
    sent: u64,
    /// Of a file: its result tells how much was sent.
    is_read: bool,
    /// The keeper's result, which follows the last byte.
    result: Option<Vec<u8>>,
}

enum Source {
    /// The keeper opens it.
    Asked,
    File(Fd),
    Pipe(Watched),
    Over,
}

pub struct Incoming {
    world: usize,
    serial: u32,
    target: Target,
    window: ReceiveWindow,
    written: u64,
    ended: bool,
    /// Of a file, set when it is written: writing takes some bits away.
    mode: Option<u32>,
}

enum Target {
    /// The keeper opens it; what came meanwhile, within the credit.
    Asked(Vec<u8>),
    File(Fd),
    Pipe(Sink),
}

impl Agent {
    pub fn request_answer(&mut self, id: u32, fields: &Fields<'_>, payload: &[u8]) -> Outcome<()> {
        let reads = matches!(fields.bytes("op")?, b"file.stat" | b"process.list");
        let world = if reads { self.world_with_files(fields) } else { self.open_world(fields) }?;
        let serial = self.ask(id, world, payload, Vec::new());
        self.streams.add(id, Stream::Asked { world, serial });
        Ok(())
    }

    pub fn request_read(&mut self, id: u32, fields: &Fields<'_>, payload: &[u8]) -> Outcome<()> {
        let world = self.world_with_files(fields)?;
        let left = fields.optional_number("length")?.unwrap_or(u64::MAX);
        let serial = self.ask(id, world, payload, Vec::new());
        let asked = Outgoing::new(world, serial, Source::Asked);
        let outgoing = Outgoing { left, is_read: true, ..asked };
        self.streams.add(id, Stream::Outgoing(outgoing));
        Ok(())
    }

    pub fn request_write(&mut self, id: u32, fields: &Fields<'_>, payload: &[u8]) -> Outcome<()> {
        let world = self.open_world(fields)?;
        let mode = fields.optional_short("mode")?;
        let serial = self.ask(id, world, payload, Vec::new());
        let asked = Incoming::new(world, serial, Target::Asked(Vec::new()));
        let incoming = Incoming { mode, ..asked };
        self.streams.add(id, Stream::Incoming(incoming));
        Ok(())
    }

    pub fn request_piped_out(
        &mut self,
        id: u32,
        fields: &Fields<'_>,
        payload: &[u8],
    ) -> Outcome<()> {
        let world = self.world_with_files(fields)?;
        let (out, into) = pipe(0).map_err(|errno| Failure::system(errno, "pipe"))?;
        set_nonblocking(out.raw(), true);
        let serial = self.ask(id, world, payload, [into].into());
        let source = Source::Pipe(Watched::new(out, Token::Stream(id).pack()));
        self.streams.add(id, Stream::Outgoing(Outgoing::new(world, serial, source)));
        self.streams.mark_ready(id);
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

    fn ask(&mut self, id: u32, world: usize, payload: &[u8], descriptors: Vec<Fd>) -> u32 {
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

    pub fn drop_outgoing(&mut self, mut outgoing: Outgoing) {
        if let Source::Pipe(pipe) = &mut outgoing.source {
            pipe.watch(&self.poller, Interest::NONE);
        }
        self.cancel_job(outgoing.world, outgoing.serial);
    }

    pub fn drop_incoming(&mut self, mut incoming: Incoming) {
        if let Target::Pipe(sink) = &mut incoming.target {
            sink.close(&self.poller);
        }
        self.cancel_job(incoming.world, incoming.serial);
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
                    self.write_file(id, &early);
                }
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
            _ => {}
        }
    }

    pub fn send_outgoing(&mut self, id: u32) -> Turn {
        let Some(Stream::Outgoing(outgoing)) = self.streams.get(id) else {
            return Turn::Waits;
        };
        let most = outgoing.window.left().min(CHUNK_BYTES).min(outgoing.left as usize);
        let source = match &mut outgoing.source {
            Source::Asked => return Turn::Waits,
            Source::Over => return self.finish_outgoing(id),
            Source::File(_) | Source::Pipe(_) if outgoing.left == 0 => {
                return self.end_outgoing(id);
            }
            Source::File(_) | Source::Pipe(_) if most == 0 => return Turn::Waits,
            Source::File(file) => &*file,
            Source::Pipe(pipe) => &pipe.fd,
        };
        match self.connection.send_read(OUT, id, most, source) {
            Ok(0) => self.end_outgoing(id),
            Ok(count) => {
                outgoing.window.take(count);
                outgoing.left -= count as u64;
                outgoing.sent += count as u64;
                Turn::More
            }
            Err(libc::EAGAIN) => {
                if let Source::Pipe(pipe) = &mut outgoing.source {
                    pipe.watch(&self.poller, Interest::READ);
                }
                Turn::Waits
            }
            Err(errno) => {
                self.close_stream(id);
                self.fail(id, &Failure::system(errno, "read"));
                Turn::Waits
            }
        }
    }

    /// No more bytes come. The result of a job may have to be waited for; one that was to give more
    /// than is wanted is stopped.
    fn end_outgoing(&mut self, id: u32) -> Turn {
        self.connection.send(Kind::End, OUT, id, &[]);
        if let Some(Stream::Outgoing(outgoing)) = self.streams.get(id) {
            let cut = outgoing.left == 0;
            let (world, serial) = (outgoing.world, outgoing.serial);
            if let Source::Pipe(mut pipe) = core::mem::replace(&mut outgoing.source, Source::Over) {
                pipe.watch(&self.poller, Interest::NONE);
            }
            if cut {
                self.cancel_job(world, serial);
            }
        }
        self.finish_outgoing(id)
    }

    fn finish_outgoing(&mut self, id: u32) -> Turn {
        if let Some(Stream::Outgoing(outgoing)) = self.streams.get(id)
            && !self.waiting.contains_key(&outgoing.serial)
        {
            match outgoing.result.take().filter(|_| !outgoing.is_read) {
                Some(body) => self.succeed_packed(id, &body),
                None => {
                    let sent = outgoing.sent;
                    self.succeed(id, pack::map().number("sizeBytes", sent));
                }
            }
        }
        Turn::Waits
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

    fn write_file(&mut self, id: u32, mut bytes: &[u8]) {
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

    fn consumed(&mut self, id: u32, bytes: usize) {
        if let Some(Stream::Incoming(incoming)) = self.streams.get(id)
            && let Some(grant) = incoming.window.consume(bytes)
        {
            self.connection.send(Kind::Credit, IN, id, &grant.to_le_bytes());
        }
    }
}

impl Outgoing {
    /// An open file is read on without it.
    pub fn needs_keeper_of(&self, world: usize) -> bool {
        self.world == world && !matches!(self.source, Source::File(_))
    }

    fn new(world: usize, serial: u32, source: Source) -> Outgoing {
        let window = SendWindow::default();
        Outgoing {
            world,
            serial,
            source,
            window,
            left: u64::MAX,
            sent: 0,
            is_read: false,
            result: None,
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
