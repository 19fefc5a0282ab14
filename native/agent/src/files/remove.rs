use alloc::format;
use alloc::vec::Vec;

use super::{Answer, Job, failed, nothing, path};
use crate::failure::Outcome;
use crate::limits::DEPTH_MAX;
use crate::pack::{self, Fields, Map};
use crate::sys::check;
use crate::sys::directory::Entries;
use crate::sys::fd::{c_path, open_at};
use crate::sys::stat::{Kind, Stat};

/// How often a directory that others keep filling is emptied again.
const ROUNDS_MAX: usize = 16;

pub fn remove<'a>(fields: &Fields<'a>) -> Outcome<Answer<'a>> {
    let path = path(fields, "path")?;
    let (recursive, force) = (fields.flag("recursive")?, fields.flag("force")?);
    let stat = match Stat::at(libc::AT_FDCWD, path, libc::AT_SYMLINK_NOFOLLOW) {
        Err(libc::ENOENT) if force => return Ok(nothing()),
        stat => stat.map_err(|errno| failed(errno, path))?,
    };
    let directory = stat.kind() == Kind::Directory;
    if directory && recursive {
        return Ok(Answer::Later(Job::Remove { path, force }));
    }
    let removed = unlink(libc::AT_FDCWD, path, if directory { libc::AT_REMOVEDIR } else { 0 });
    match removed {
        Err(libc::ENOENT) if force => Ok(nothing()),
        removed => removed.map(|()| nothing()).map_err(|errno| failed(errno, path)),
    }
}

/// A whole tree. Links are removed, never followed, also when the world swaps names meanwhile.
pub fn remove_all(path: &[u8], force: bool) -> Outcome<Map> {
    let mut done = Ok(());
    for _ in 0..ROUNDS_MAX {
        done = empty(path).and_then(|()| unlink(libc::AT_FDCWD, path, libc::AT_REMOVEDIR));
        if done != Err(libc::ENOTEMPTY) {
            break;
        }
    }
    match done {
        Err(libc::ENOENT) if force => Ok(pack::map()),
        done => done.map(|()| pack::map()).map_err(|errno| failed(errno, path)),
    }
}

/// Removes all in `path`, as far as it can; the last errno of what stayed.
fn empty(path: &[u8]) -> Result<(), i32> {
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let top = Entries::of(open_at(libc::AT_FDCWD, path, flags, 0)?)?;
    let mut lifted = 0u64;
    let mut failure = Ok(());
    // Directories from the top to where we are, each with its name in the one above.
    let mut open: Vec<(Entries, Vec<u8>)> = [(top, Vec::new())].into();
    while let Some((entries, _)) = open.last_mut() {
        let here = entries.descriptor();
        let Some(name) = entries.next() else {
            let (_, name) = open.pop().unwrap_or_else(|| unreachable!());
            if let Some((above, _)) = open.last() {
                note(&mut failure, unlink(above.descriptor(), &name, libc::AT_REMOVEDIR));
            }
            continue;
        };
        match unlink(here, &name, 0) {
            Err(libc::EISDIR | libc::EPERM) => {}
            done => {
                note(&mut failure, done);
                continue;
            }
        }
        if open.len() >= DEPTH_MAX {
            // Too deep to keep all above it open: lifted to the top, where the next round finds it.
            lifted += 1;
            let at_top = format!(".removed-{lifted}");
            note(&mut failure, rename(here, &name, open[0].0.descriptor(), at_top.as_bytes()));
            note(&mut failure, Err(libc::ENOTEMPTY));
            continue;
        }
        match open_at(here, &name, flags, 0).and_then(Entries::of) {
            Ok(below) => open.push((below, name)),
            Err(errno) => note(&mut failure, Err(errno)),
        }
    }
    failure
}

/// What vanished by itself is no failure; ENOTEMPTY asks for another round, and so never hides.
fn note(failure: &mut Result<(), i32>, done: Result<(), i32>) {
    if let Err(errno) = done
        && errno != libc::ENOENT
        && *failure != Err(libc::ENOTEMPTY)
    {
        *failure = Err(errno);
    }
}

fn unlink(directory: i32, name: &[u8], flags: i32) -> Result<(), i32> {
    let name = c_path(name)?;
    check(unsafe { libc::unlinkat(directory, name.as_ptr(), flags) }).map(|_| ())
}

fn rename(from: i32, name: &[u8], to: i32, new: &[u8]) -> Result<(), i32> {
    let (name, new) = (c_path(name)?, c_path(new)?);
    check(unsafe { libc::renameat(from, name.as_ptr(), to, new.as_ptr()) }).map(|_| ())
}
