use alloc::format;
use alloc::vec::Vec;

use super::{Answer, Job, failed, nothing, path};
use crate::failure::Outcome;
use crate::limits::DEPTH_MAX;
use crate::pack::{self, Fields, Map};
use crate::sys::check;
use crate::sys::directory::Entries;
use crate::sys::fd::{c_path, open_directory_at};
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
/// Told is the first thing that could not be removed.
pub fn remove_all(path: &[u8], force: bool) -> Outcome<Map> {
    let mut sweep = Sweep { progress: 0, lifted: 0, failure: None };
    let mut done = Err(libc::ENOTEMPTY);
    for _ in 0..ROUNDS_MAX {
        let before = sweep.progress;
        done = sweep.empty(path).and_then(|()| unlink(libc::AT_FDCWD, path, libc::AT_REMOVEDIR));
        if done != Err(libc::ENOTEMPTY) || sweep.progress == before {
            break;
        }
    }
    match done {
        Ok(()) => Ok(pack::map()),
        Err(libc::ENOENT) if force => Ok(pack::map()),
        Err(errno) => Err(failed(sweep.failure.unwrap_or(errno), path)),
    }
}

struct Sweep {
    /// Names that were removed or moved.
    progress: u64,
    lifted: u64,
    failure: Option<i32>,
}

impl Sweep {
    /// Removes all in `path`, as far as it can.
    fn empty(&mut self, path: &[u8]) -> Result<(), i32> {
        let top = Entries::of(open_directory_at(libc::AT_FDCWD, path)?)?;
        // Directories from the top to where we are, each with its name in the one above.
        let mut open: Vec<(Entries, Vec<u8>)> = [(top, Vec::new())].into();
        while let Some((entries, _)) = open.last_mut() {
            let here = entries.descriptor();
            if let Some(name) = entries.next() {
                if let Some(below) = self.remove(here, &name, &open) {
                    open.push((below, name));
                }
                continue;
            }
            let left = open.pop();
            if let (Some((_, name)), Some((above, _))) = (left, open.last()) {
                self.note(unlink(above.descriptor(), &name, libc::AT_REMOVEDIR));
            }
        }
        Ok(())
    }

    /// Gives a directory that has to be emptied first.
    fn remove(&mut self, here: i32, name: &[u8], open: &[(Entries, Vec<u8>)]) -> Option<Entries> {
        let refused = match unlink(here, name, 0) {
            Err(errno @ (libc::EISDIR | libc::EPERM)) => errno,
            done => {
                self.note(done);
                return None;
            }
        };
        if open.len() >= DEPTH_MAX {
            // Too deep to keep all above it open: lifted to the top, where the next round finds it.
            self.lifted += 1;
            let at_top = format!(".removed-{}", self.lifted);
            self.note(rename(here, name, open[0].0.descriptor(), at_top.as_bytes()));
            return None;
        }
        match open_directory_at(here, name).and_then(Entries::of) {
            Ok(below) => Some(below),
            Err(errno) => {
                let is_none = matches!(errno, libc::ENOTDIR | libc::ELOOP);
                self.note(Err(if is_none { refused } else { errno }));
                None
            }
        }
    }

    /// What vanished by itself is no failure; a directory that isn't empty is the failure of what
    /// is in it.
    fn note(&mut self, done: Result<(), i32>) {
        match done {
            Ok(()) => self.progress += 1,
            Err(libc::ENOENT | libc::ENOTEMPTY) => {}
            Err(errno) => {
                self.failure.get_or_insert(errno);
            }
        }
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
