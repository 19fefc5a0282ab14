//! The tar on its way into the pipe, in large pieces: one for each small file would cost more than the file.

use alloc::string::String;
use alloc::vec::Vec;

use crate::failure::{Failure, Outcome};
use crate::files::failed;
use crate::files::tar::{Entry, padding, write_header_with};
use crate::sys::fd::{Fd, write_all_blocking};

const BUFFER_BYTES: usize = 256 << 10;

pub struct Output<'a> {
    to: &'a Fd,
    buffer: Vec<u8>,
    pub entries: u64,
}

impl<'a> Output<'a> {
    pub fn new(to: &'a Fd) -> Output<'a> {
        Output { to, buffer: Vec::with_capacity(BUFFER_BYTES), entries: 0 }
    }

    pub fn head(&mut self, entry: &Entry, extra: &[(String, Vec<u8>)]) -> Outcome<()> {
        self.entries += 1;
        write_header_with(&mut self.buffer, entry, extra);
        self.flush_if_full()
    }

    pub fn put(&mut self, bytes: &[u8]) -> Outcome<()> {
        self.buffer.extend_from_slice(bytes);
        self.flush_if_full()
    }

    /// So many zeros that a content of `size` bytes ends with a block.
    pub fn pad(&mut self, size: u64) -> Outcome<()> {
        self.buffer.resize(self.buffer.len() + padding(size), 0);
        self.flush_if_full()
    }

    /// `size` bytes of a file from where it stands. What was cut off meanwhile is zeros.
    pub fn copy(&mut self, file: &Fd, size: u64, name: &[u8]) -> Outcome<()> {
        let mut left = size;
        while left > 0 {
            if self.buffer.len() >= BUFFER_BYTES {
                self.flush()?;
            }
            let at = self.buffer.len();
            let most = (BUFFER_BYTES - at).min(left.min(usize::MAX as u64) as usize);
            self.buffer.resize(at + most, 0);
            match file.read(&mut self.buffer[at..]) {
                Ok(0) => left -= most as u64,
                Ok(count) => {
                    self.buffer.truncate(at + count);
                    left -= count as u64;
                }
                Err(errno) => return Err(failed(errno, name)),
            }
        }
        self.flush_if_full()
    }

    pub fn flush(&mut self) -> Outcome<()> {
        if !write_all_blocking(self.to.raw(), &self.buffer) {
            return Err(Failure::system(libc::EPIPE, "nobody reads the difference any more"));
        }
        self.buffer.clear();
        Ok(())
    }

    fn flush_if_full(&mut self) -> Outcome<()> {
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }
}
