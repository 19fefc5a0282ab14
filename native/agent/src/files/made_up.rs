use crate::failure::{Failure, Outcome};
use crate::pack::{self, Map};
use crate::sys::fd::{Fd, set_nonblocking, write_all_blocking};

/// Reads a file that the kernel makes up. Such a read may block for ever, so it has a process to
/// itself. A reader that is gone ends it.
pub fn copy(from: &Fd, to: &Fd) -> Outcome<Map> {
    set_nonblocking(from.raw(), false);
    let mut chunk = [0; 16_384];
    loop {
        match from.read(&mut chunk) {
            Ok(0) => return Ok(pack::map()),
            Ok(count) if write_all_blocking(to.raw(), &chunk[..count]) => {}
            Ok(_) => return Err(Failure::system(libc::EPIPE, "nobody reads any more")),
            Err(errno) => return Err(Failure::system(errno, "read")),
        }
    }
}
