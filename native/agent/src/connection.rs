//! The two FIFOs to the daemon: whole frames in, a queue of bytes out, and whether anyone is there.
//!
//! ```
//! attached ─ end of file, or EPIPE ─▶ detached ─ anything to read again ─▶ attached
//! ```
//! Frames count only after a sync; the decoder hunts for one at the start and after each detach.

use alloc::vec::Vec;

use sandlot_frames::{
    Decoder, HEADER_BYTES, Kind, Nonce, PAYLOAD_BYTES_MAX, Prey, encode, header, sync_payload,
};

use crate::clock::now_ms;
use crate::failure::{Code, Failure};
use crate::keeper::message::pack_failure;

use crate::limits::{OUTPUT_BYTES_BUSY, OUTPUT_BYTES_MAX, REATTACH_FIRST_MS, REATTACH_LAST_MS};
use crate::sys::fd::{self, Fd};
use crate::sys::poller::{Interest, Poller, Watched};

const END: u8 = 0xA8;

pub struct Connection {
    input: Watched,
    output: Watched,
    /// Taken out while frames are handled: they borrow it.
    pub decoder: Option<Decoder>,
    out: Vec<u8>,
    written: usize,
    peer: Peer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peer {
    Attached,
    Detached { since_ms: u64, look_at_ms: u64, pause_ms: u64 },
}

#[derive(Debug, PartialEq, Eq)]
pub enum Read {
    /// Bytes came, there may be more.
    Some,
    Nothing,
    /// The peer is gone: end of file, or nobody reads.
    Gone,
}

impl Connection {
    pub fn new(input: Watched, output: Watched) -> Connection {
        fd::set_nonblocking(input.fd.raw(), true);
        fd::set_nonblocking(output.fd.raw(), true);
        let mut decoder = Decoder::new();
        decoder.hunt(Prey::Sync);
        let peer = Peer::Attached;
        Connection { input, output, decoder: Some(decoder), out: Vec::new(), written: 0, peer }
    }

    pub fn read(&mut self) -> Read {
        let Some(decoder) = &mut self.decoder else {
            return Read::Nothing;
        };
        match self.input.fd.read(decoder.space()) {
            Ok(0) => self.detach(),
            Ok(count) => {
                decoder.filled(count);
                self.peer = Peer::Attached;
                Read::Some
            }
            Err(libc::EAGAIN) => {
                // Somebody holds the other end again and hasn't written yet.
                self.peer = Peer::Attached;
                Read::Nothing
            }
            Err(_) => self.detach(),
        }
    }

    /// Writes what it can; `Gone` when nobody reads.
    pub fn flush(&mut self) -> Read {
        while self.written < self.out.len() {
            match self.output.fd.write(&self.out[self.written..]) {
                Ok(count) => self.written += count,
                Err(libc::EAGAIN) => break,
                Err(_) => return self.detach(),
            }
        }
        if self.written == self.out.len() {
            self.out.clear();
            self.written = 0;
        } else if self.written >= OUTPUT_BYTES_BUSY {
            self.out.drain(..self.written);
            self.written = 0;
        }
        Read::Nothing
    }

    fn detach(&mut self) -> Read {
        let now_ms = now_ms();
        self.drop_output();
        if let Some(decoder) = &mut self.decoder {
            decoder.reset();
            decoder.hunt(Prey::Sync);
        }
        match self.peer {
            Peer::Attached => {
                let pause_ms = REATTACH_FIRST_MS;
                self.peer =
                    Peer::Detached { since_ms: now_ms, look_at_ms: now_ms + pause_ms, pause_ms };
                Read::Gone
            }
            Peer::Detached { since_ms, pause_ms, .. } => {
                let pause_ms = (pause_ms * 2).min(REATTACH_LAST_MS);
                self.peer = Peer::Detached { since_ms, look_at_ms: now_ms + pause_ms, pause_ms };
                Read::Nothing
            }
        }
    }

    /// When to look for a new peer.
    pub fn look_at_ms(&self) -> Option<u64> {
        match self.peer {
            Peer::Attached => None,
            Peer::Detached { look_at_ms, .. } => Some(look_at_ms),
        }
    }

    pub fn detached_since_ms(&self) -> Option<u64> {
        match self.peer {
            Peer::Attached => None,
            Peer::Detached { since_ms, .. } => Some(since_ms),
        }
    }

    /// Sets what the poller waits for. At end of file an input is always ready: without a peer only
    /// news of it count, and it is looked at by the clock too.
    pub fn watch(&mut self, poller: &Poller, reading: bool) {
        let attached = self.peer == Peer::Attached;
        let interest = if attached { Interest::READ.if_true(reading) } else { Interest::READ_NEWS };
        self.input.watch(poller, interest);
        let waiting = attached && !self.out.is_empty();
        self.output.watch(poller, Interest::WRITE.if_true(waiting));
    }

    pub fn unsent(&self) -> usize {
        self.out.len() - self.written
    }

    /// Whether data should wait until more is written.
    pub fn busy(&self) -> bool {
        self.unsent() >= OUTPUT_BYTES_BUSY
    }

    /// Whether even requests should wait: their answers would pile up.
    pub fn full(&self) -> bool {
        self.unsent() >= OUTPUT_BYTES_MAX
    }

    pub fn drop_output(&mut self) {
        self.out = Vec::new();
        self.written = 0;
    }

    pub fn acknowledge(&mut self, nonce: &Nonce) {
        self.send(Kind::SyncAck, 0, 0, &sync_payload(nonce));
    }

    pub fn send(&mut self, kind: Kind, channel: u8, stream: u32, payload: &[u8]) {
        // Every list has its bound; a payload that breaks the protocol would end the sandbox.
        if payload.len() > PAYLOAD_BYTES_MAX {
            let failure = Failure::new(Code::TooLarge, "the answer is too long");
            return encode(&mut self.out, Kind::Error, 0, stream, &pack_failure(&failure));
        }
        encode(&mut self.out, kind, channel, stream, payload);
    }

    /// A data frame that is read straight into the queue: up to `most` bytes from `source`.
    /// Gives what the read gave; without bytes there is no frame.
    pub fn send_read(
        &mut self,
        channel: u8,
        stream: u32,
        most: usize,
        source: &Fd,
    ) -> Result<usize, i32> {
        let at = self.out.len();
        self.out.resize(at + HEADER_BYTES + most, 0);
        let read = source.read(&mut self.out[at + HEADER_BYTES..]);
        let count = *read.as_ref().unwrap_or(&0);
        if count == 0 {
            self.out.truncate(at);
            return read;
        }
        self.out[at..at + HEADER_BYTES].copy_from_slice(&header(
            Kind::Data,
            channel,
            stream,
            count,
        ));
        self.out.truncate(at + HEADER_BYTES + count);
        self.out.push(END);
        read
    }
}
