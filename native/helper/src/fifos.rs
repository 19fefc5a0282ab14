//! The two named pipes between the daemon and the agent.
//!
//! The daemon opens its ends by itself, before or after: `in` for reading and writing, so that the agent meets no end of
//! file while a daemon lives, `out` for reading.

use crate::fail::Fail;
use crate::request::Request;
use serde_json::{Value, json};
use std::ffi::CStr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// `{ in, out }` → `{}`: makes both, mode 0600.
pub fn make(request: &Request) -> Result<Value, Fail> {
    for key in ["in", "out"] {
        if unsafe { libc::mkfifo(request.path(key)?.as_ptr(), 0o600) } != 0 {
            return Err(Fail::errno("fifos", request.text(key)?));
        }
    }
    Ok(json!({}))
}

pub struct SandboxEnds {
    pub input: OwnedFd,
    pub output: OwnedFd,
    /// Of the smaller of the two; the kernel may refuse what was asked.
    pub pipe_bytes: i32,
}

/// A pipe's size lives as long as somebody has it open: the sandbox's ends keep it across the daemon's death.
pub fn open_sandbox_ends(
    input: &CStr,
    output: &CStr,
    pipe_bytes: i32,
) -> Result<SandboxEnds, Fail> {
    let input = open(input, libc::O_RDONLY | libc::O_NONBLOCK)?;
    // A write end can be had at once only where a reader is: for this moment it is this one.
    let reader = open(output, libc::O_RDWR | libc::O_NONBLOCK)?;
    let output = open(output, libc::O_WRONLY)?;
    drop(reader);
    let pipe_bytes =
        set_size(input.as_raw_fd(), pipe_bytes).min(set_size(output.as_raw_fd(), pipe_bytes));
    Ok(SandboxEnds { input, output, pipe_bytes })
}

fn open(path: &CStr, flags: i32) -> Result<OwnedFd, Fail> {
    let fd = unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC) };
    if fd < 0 {
        return Err(Fail::errno("fifos", &path.to_string_lossy()));
    }
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Halves what is asked until the machine's limit for pipes allows it.
fn set_size(fd: RawFd, wanted: i32) -> i32 {
    let mut size = wanted;
    while size > 65_536 && unsafe { libc::fcntl(fd, libc::F_SETPIPE_SZ, size) } < 0 {
        size /= 2;
    }
    unsafe { libc::fcntl(fd, libc::F_GETPIPE_SZ) }
}
