//! News of files that change by themselves, as those of cgroups do. (The runtime's epoll doesn't
//! take such files; inotify tells of them.)

use super::check;
use super::fd::{Fd, c_path};

pub fn open() -> Result<Fd, i32> {
    let fd = check(unsafe { libc::inotify_init1(libc::IN_CLOEXEC | libc::IN_NONBLOCK) })?;
    Ok(Fd::own(fd as i32))
}

/// Gives what `forget` takes.
pub fn watch(changes: &Fd, path: &[u8]) -> Result<i32, i32> {
    let path = c_path(path)?;
    let watch = unsafe { libc::inotify_add_watch(changes.raw(), path.as_ptr(), libc::IN_MODIFY) };
    check(watch).map(|watch| watch as i32)
}

pub fn forget(changes: &Fd, watch: i32) {
    unsafe { libc::inotify_rm_watch(changes.raw(), watch) };
}

/// Takes all news; which files they are about is not told, look at those you care for.
pub fn drain(changes: &Fd) {
    let mut news = [0; 4096];
    while matches!(changes.read(&mut news), Ok(count) if count > 0) {}
}
