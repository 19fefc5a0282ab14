use super::change::make_parents;
use super::read::regular;
use super::{Answer, failed, path};
use crate::failure::{Code, Failure, Outcome};
use crate::pack::{self, Fields};
use crate::sys::check;
use crate::sys::fd::open as open_file;
use crate::sys::stat::{Stat, is_made_up};

/// Opens for the agent to write.
pub fn open<'a>(fields: &Fields<'a>) -> Outcome<Answer<'a>> {
    let path = path(fields, "path")?;
    let mode = fields.optional_short("mode")?;
    let owner = (fields.optional_short("uid")?, fields.optional_short("gid")?);
    if fields.flag("parents")? {
        make_parents(path)?;
    }
    let mut flags = libc::O_WRONLY | libc::O_CREAT | libc::O_NONBLOCK | libc::O_NOCTTY;
    if fields.flag("exclusive")? {
        flags |= libc::O_EXCL;
    }
    flags |= if fields.flag("append")? { libc::O_APPEND } else { libc::O_TRUNC };
    if let Ok(stat) = Stat::at(libc::AT_FDCWD, path, 0) {
        regular(&stat)?;
    }
    let created = mode.unwrap_or(0o644) & 0o7777;
    let file = open_file(path, flags, created).map_err(|errno| failed(errno, path))?;
    regular(&Stat::of(file.raw()).map_err(|errno| failed(errno, path))?)?;
    if is_made_up(file.raw()) {
        return Err(Failure::new(Code::Unsupported, "files of /proc and /sys are not written"));
    }
    if owner != (None, None) {
        let [uid, gid] = [owner.0, owner.1].map(|id| id.unwrap_or(u32::MAX));
        check(unsafe { libc::fchown(file.raw(), uid, gid) })
            .map_err(|errno| failed(errno, path))?;
    }
    if mode.is_some() {
        check(unsafe { libc::fchmod(file.raw(), created) }).map_err(|errno| failed(errno, path))?;
    }
    Ok(Answer::Done(pack::map(), Some(file)))
}
