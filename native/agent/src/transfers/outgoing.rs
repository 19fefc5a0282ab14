//! Bytes from a file, a list or a tar to the daemon.

use alloc::vec::Vec;

use sandlot_frames::{Kind, SendWindow};

use crate::agent::Agent;
use crate::failure::{Failure, Outcome};
use crate::limits::{CHUNK_BYTES, DIFFERENCE_PIPE_BYTES};
use crate::pack::{self, Fields};
use crate::streams::{Stream, Turn};
use crate::sys::fd::{Fd, pipe, set_nonblocking, widen_pipe};
use crate::sys::poller::{Interest, Watched};
use crate::token::Token;

const CHANNEL: u8 = 1;

pub struct Outgoing {
    pub(super) world: usize,
    pub(super) serial: u32,
    pub(super) source: Source,
    pub window: SendWindow,
    /// What the request wants at most.
    pub(super) left: u64,
    pub(super) sent: u64,
    /// Of a file: its result tells how much was sent.
    pub(super) is_read: bool,
    /// The keeper's result, which follows the last byte.
    pub(super) result: Option<Vec<u8>>,
}

pub enum Source {
    /// The keeper opens it.
    Asked,
    File(Fd),
    Pipe(Watched),
    Over,
}

impl Agent {
    pub fn request_read(&mut self, id: u32, fields: &Fields<'_>, payload: &[u8]) -> Outcome<()> {
        let world = self.world_with_files(fields)?;
        let left = fields.optional_number("length")?.unwrap_or(u64::MAX);
        let serial = self.ask(id, world, payload, Vec::new());
        let asked = Outgoing::new(world, serial, Source::Asked);
        let outgoing = Outgoing { left, is_read: true, ..asked };
        self.streams.add(id, Stream::Outgoing(outgoing));
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
        self.read_pipe(id, world, payload, out, [into].into());
        Ok(())
    }

    /// Asks the keeper for what comes by a pipe; `descriptors` are what it needs, the pipe's other end first.
    fn read_pipe(&mut self, id: u32, world: usize, payload: &[u8], out: Fd, descriptors: Vec<Fd>) {
        set_nonblocking(out.raw(), true);
        let serial = self.ask(id, world, payload, descriptors);
        let source = Source::Pipe(Watched::new(out, Token::Stream(id).pack()));
        self.streams.add(id, Stream::Outgoing(Outgoing::new(world, serial, source)));
        self.streams.mark_ready(id);
    }

    /// What a world changed: the job gets the two directories that no world sees.
    pub fn request_difference(
        &mut self,
        id: u32,
        fields: &Fields<'_>,
        payload: &[u8],
    ) -> Outcome<()> {
        let world = self.world_with_files(fields)?;
        let (upper, below) = (self.open_upper(world)?, self.open_below(world)?);
        let (out, into) = pipe(0).map_err(|errno| Failure::system(errno, "pipe"))?;
        widen_pipe(&out, DIFFERENCE_PIPE_BYTES);
        self.read_pipe(id, world, payload, out, [into, upper, below].into());
        Ok(())
    }

    pub fn drop_outgoing(&mut self, mut outgoing: Outgoing) {
        if let Source::Pipe(pipe) = &mut outgoing.source {
            pipe.watch(&self.poller, Interest::NONE);
        }
        self.cancel_job(outgoing.world, outgoing.serial);
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
        match self.connection.send_read(CHANNEL, id, most, source) {
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
        self.connection.send(Kind::End, CHANNEL, id, &[]);
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
