//! Bytes on their way from the daemon into a pipe: a command's stdin, a tar's unpacker.

use alloc::collections::VecDeque;

use crate::sys::poller::{Interest, Poller, Watched};

pub struct Sink {
    /// `None` once it is closed, by us or by the reader.
    pipe: Option<Watched>,
    /// Bounded by the credit of its stream.
    waiting: VecDeque<u8>,
    ending: bool,
}

impl Sink {
    /// `pipe` must not block.
    pub fn new(pipe: Watched) -> Sink {
        Sink { pipe: Some(pipe), waiting: VecDeque::new(), ending: false }
    }

    /// Gives how many bytes were consumed, of these or of earlier ones.
    pub fn push(&mut self, bytes: &[u8], poller: &Poller) -> usize {
        let mut consumed = 0;
        if self.waiting.is_empty() {
            consumed = self.write(bytes);
        }
        self.waiting.extend(&bytes[consumed..]);
        self.settle(poller);
        consumed
    }

    /// To be called when the pipe takes more.
    pub fn flush(&mut self, poller: &Poller) -> usize {
        let mut consumed = 0;
        while !self.waiting.is_empty() {
            let (front, _) = self.waiting.as_slices();
            let front = front.to_vec();
            let count = self.write(&front);
            self.waiting.drain(..count);
            consumed += count;
            if count < front.len() {
                break;
            }
        }
        self.settle(poller);
        consumed
    }

    /// No more bytes come; the pipe is closed behind the last one.
    pub fn end(&mut self, poller: &Poller) {
        self.ending = true;
        self.settle(poller);
    }

    /// All that there was to write is written, or nobody reads any more.
    pub fn is_closed(&self) -> bool {
        self.pipe.is_none()
    }

    pub fn forget_waiting(&mut self, poller: &Poller) {
        self.waiting = VecDeque::new();
        self.settle(poller);
    }

    pub fn close(&mut self, poller: &Poller) {
        if let Some(mut pipe) = self.pipe.take() {
            pipe.watch(poller, Interest::NONE);
        }
        self.waiting = VecDeque::new();
    }

    /// Bytes for a reader that is gone count as consumed, so that the sender isn't held up.
    fn write(&mut self, bytes: &[u8]) -> usize {
        let Some(pipe) = &self.pipe else {
            return bytes.len();
        };
        match pipe.fd.write(bytes) {
            Ok(count) => count,
            Err(libc::EAGAIN) => 0,
            Err(_) => {
                self.ending = true;
                bytes.len()
            }
        }
    }

    fn settle(&mut self, poller: &Poller) {
        if self.ending && self.waiting.is_empty() {
            return self.close(poller);
        }
        if let Some(pipe) = &mut self.pipe {
            pipe.watch(poller, Interest::WRITE.if_true(!self.waiting.is_empty()));
        }
    }
}
