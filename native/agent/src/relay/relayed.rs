//! One connection of a process inside as a stream: channel 1 is what the process sends, channel 0 what it gets. An end on a
//! channel is the end of that direction alone.
//!
//! A process that connects to the relay opens its stream, which the daemon answers when it is done. One that listens has been
//! asked for by the daemon, and is answered from here when both directions have ended.

use sandlot_frames::{Kind, ReceiveWindow, SendWindow};

use crate::agent::Agent;
use crate::failure::Failure;
use crate::incoming::Broken;
use crate::limits::CHUNK_BYTES;
use crate::pack;
use crate::sink::Sink;
use crate::streams::{Stream, Turn};
use crate::sys::fd::Fd;
use crate::sys::network::{end_writing, has_unread, reset_on_close};
use crate::sys::poller::{Interest, Watched};
use crate::token::Token;

const FROM_INSIDE: u8 = 1;
const TO_INSIDE: u8 = 0;

/// Who began the connection, and so its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opener {
    Inside,
    Daemon,
}

pub struct Relayed {
    opener: Opener,
    socket: Watched,
    sink: Sink,
    pub window: SendWindow,
    credit: ReceiveWindow,
    /// The process has heard nothing since it sent something, or since it connected.
    asked: bool,
    /// The process sends no more, and the daemon knows.
    heard_all: bool,
    /// The daemon sends no more.
    ended: bool,
    /// The process was told so.
    told_end: bool,
    /// The daemon has answered: only what waits for the process is left.
    answered: bool,
}

impl Relayed {
    pub fn new(socket: Fd, id: u32, opener: Opener) -> Result<Relayed, i32> {
        let token = Token::Stream(id).pack();
        let writing = socket.duplicate()?;
        Ok(Relayed {
            opener,
            socket: Watched::new(socket, token),
            sink: Sink::new(Watched::new(writing, token)),
            window: SendWindow::default(),
            credit: ReceiveWindow::default(),
            asked: true,
            heard_all: false,
            ended: false,
            told_end: false,
            answered: false,
        })
    }

    /// The process waits for what it asked.
    pub fn is_unanswered(&self) -> bool {
        self.opener == Opener::Inside && (self.asked || has_unread(&self.socket.fd))
    }

    /// Nothing moves any more, and nobody has to be told that.
    fn is_over(&self) -> bool {
        self.told_end && (self.answered || self.opener == Opener::Daemon && self.heard_all)
    }

    fn settle(&mut self) {
        if self.sink.is_closed() && !self.told_end {
            self.told_end = true;
            end_writing(&self.socket.fd);
        }
    }
}

impl Agent {
    /// What the process has sent goes to the daemon.
    pub fn send_relayed(&mut self, id: u32) -> Turn {
        let Some(Stream::Relayed(relayed)) = self.streams.get(id) else {
            return Turn::Waits;
        };
        let most = relayed.window.left().min(CHUNK_BYTES);
        if most == 0 || relayed.heard_all || relayed.answered {
            return Turn::Waits;
        }
        match self.connection.send_read(FROM_INSIDE, id, most, &relayed.socket.fd) {
            Ok(0) => {
                relayed.heard_all = true;
                self.connection.send(Kind::End, FROM_INSIDE, id, &[]);
                self.finish_relayed(id);
                Turn::Waits
            }
            Ok(count) => {
                relayed.asked = true;
                relayed.window.take(count);
                Turn::More
            }
            Err(libc::EAGAIN) => {
                relayed.socket.watch(&self.poller, Interest::READ);
                Turn::Waits
            }
            Err(errno) => {
                let opener = relayed.opener;
                self.close_stream(id);
                match opener {
                    Opener::Inside => self.connection.send(Kind::Cancel, 0, id, &[]),
                    Opener::Daemon => self.fail(id, &Failure::system(errno, "connection")),
                }
                Turn::Waits
            }
        }
    }

    /// The process has sent more, or takes more.
    pub fn on_relayed_ready(&mut self, id: u32) {
        let Some(Stream::Relayed(relayed)) = self.streams.get(id) else {
            return;
        };
        relayed.socket.watch(&self.poller, Interest::NONE);
        let consumed = relayed.sink.flush(&self.poller);
        relayed.settle();
        self.streams.mark_ready(id);
        self.on_relayed_consumed(id, consumed);
    }

    pub fn on_relayed_data(&mut self, id: u32, bytes: &[u8]) -> Result<(), Broken> {
        let Some(Stream::Relayed(relayed)) = self.streams.get(id) else {
            return Ok(());
        };
        if relayed.ended || relayed.answered || relayed.credit.receive(bytes.len()).is_err() {
            return Err(Broken);
        }
        relayed.asked = false;
        let consumed = relayed.sink.push(bytes, &self.poller);
        relayed.settle();
        self.on_relayed_consumed(id, consumed);
        Ok(())
    }

    pub fn on_relayed_end(&mut self, id: u32) {
        if let Some(Stream::Relayed(relayed)) = self.streams.get(id) {
            relayed.ended = true;
            relayed.sink.end(&self.poller);
            relayed.settle();
            self.finish_relayed(id);
        }
    }

    /// The daemon is done with it. What the process has not taken yet it still gets.
    pub fn on_relay_answered(&mut self, id: u32) {
        if let Some(Stream::Relayed(relayed)) = self.streams.get(id) {
            self.relay.note_answered();
            relayed.answered = true;
            relayed.socket.watch(&self.poller, Interest::NONE);
            relayed.sink.end(&self.poller);
            relayed.settle();
            self.finish_relayed(id);
        }
    }

    pub fn drop_relayed(&mut self, mut relayed: Relayed) {
        if !relayed.is_over() {
            reset_on_close(&relayed.socket.fd);
        }
        relayed.sink.close(&self.poller);
        relayed.socket.watch(&self.poller, Interest::NONE);
        match relayed.opener {
            Opener::Inside => self.relay.open -= 1,
            Opener::Daemon => self.ports.open -= 1,
        }
    }

    fn on_relayed_consumed(&mut self, id: u32, bytes: usize) {
        if let Some(Stream::Relayed(relayed)) = self.streams.get(id)
            && !relayed.answered
            && let Some(grant) = relayed.credit.consume(bytes)
        {
            self.connection.send(Kind::Credit, TO_INSIDE, id, &grant.to_le_bytes());
        }
        self.finish_relayed(id);
    }

    fn finish_relayed(&mut self, id: u32) {
        if let Some(Stream::Relayed(relayed)) = self.streams.get(id)
            && relayed.is_over()
        {
            let opener = relayed.opener;
            self.close_stream(id);
            if opener == Opener::Daemon {
                self.succeed(id, pack::map());
            }
        }
    }
}
