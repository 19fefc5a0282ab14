//! A client of gVisor's control socket: one JSON value per call and per answer, no framing. A descriptor travels with
//! the first byte. The call is private to gVisor, so the runtime's version is pinned and the daemon tries it at start.

use crate::fail::Fail;
use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

const ANSWER_BYTES_MAX: usize = 1 << 20;

pub struct Urpc {
    stream: UnixStream,
    deadline: Instant,
}

impl Urpc {
    pub fn connect(path: &str, deadline: Instant) -> Result<Urpc, Fail> {
        let stream = uninterrupted(|| UnixStream::connect(path))
            .map_err(|error| Fail::io("control", error))?;
        Ok(Urpc { stream, deadline })
    }

    /// The call's result; an error of the runtime is a failure of stage `control`.
    pub fn call(
        &mut self,
        method: &str,
        argument: Value,
        descriptor: Option<BorrowedFd>,
    ) -> Result<Value, Fail> {
        self.set_timeouts()?;
        let message = json!({ "method": method, "arg": argument }).to_string().into_bytes();
        let (first, rest) = message.split_at(1);
        match descriptor {
            Some(fd) => send_with_descriptor(&self.stream, first, fd)?,
            None => self.stream.write_all(first).map_err(|error| Fail::io("control", error))?,
        }
        self.stream.write_all(rest).map_err(|error| Fail::io("control", error))?;
        let mut answer = self.read_answer(method)?;
        if answer["success"] == json!(true) {
            return Ok(answer["result"].take());
        }
        let reason = answer["err"].as_str().unwrap_or("no reason given");
        Err(Fail::new("control", format!("{method}: {reason}")))
    }

    fn read_answer(&mut self, method: &str) -> Result<Value, Fail> {
        let mut bytes = Vec::new();
        let mut chunk = [0u8; 4096];
        loop {
            self.set_timeouts()?;
            let count = uninterrupted(|| self.stream.read(&mut chunk))
                .map_err(|error| Fail::io("control", error))?;
            bytes.extend_from_slice(&chunk[..count]);
            match serde_json::from_slice(&bytes) {
                Ok(value) => return Ok(value),
                Err(error) if error.is_eof() && count > 0 && bytes.len() < ANSWER_BYTES_MAX => {}
                Err(error) => return Err(Fail::new("control", format!("{method}: {error}"))),
            }
        }
    }

    fn set_timeouts(&self) -> Result<(), Fail> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left < Duration::from_millis(1) {
            return Err(Fail::new("control", "the control socket did not answer in time"));
        }
        self.stream
            .set_read_timeout(Some(left))
            .and_then(|()| self.stream.set_write_timeout(Some(left)))
            .map_err(|error| Fail::io("control", error))
    }
}

fn send_with_descriptor(stream: &UnixStream, bytes: &[u8], fd: BorrowedFd) -> Result<(), Fail> {
    let mut iov = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // Aligned as a cmsghdr must be, and larger than the one header and one descriptor it holds.
    let mut control = [0u64; 8];
    let sent = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &mut iov;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(size_of::<i32>() as u32) as usize;
        let header = libc::CMSG_FIRSTHDR(&message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(size_of::<i32>() as u32) as usize;
        libc::CMSG_DATA(header).cast::<i32>().write_unaligned(fd.as_raw_fd());
        uninterrupted(|| match libc::sendmsg(stream.as_raw_fd(), &message, libc::MSG_NOSIGNAL) {
            sent if sent < 0 => Err(std::io::Error::last_os_error()),
            sent => Ok(sent as usize),
        })
    };
    match sent {
        Ok(sent) if sent == bytes.len() => Ok(()),
        Ok(_) => Err(Fail::new("control", "sendmsg sent nothing")),
        Err(error) => Err(Fail::new("control", format!("sendmsg: {error}"))),
    }
}

/// A machine or a process that was stopped and goes on interrupts what waits with a timeout.
fn uninterrupted<T>(mut call: impl FnMut() -> std::io::Result<T>) -> std::io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
