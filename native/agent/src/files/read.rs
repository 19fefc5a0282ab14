use super::{Answer, Job, describe, failed, path};
use crate::failure::{Code, Failure, Outcome};
use crate::pack::{self, Fields};
use crate::sys::fd::{open as open_file, pipe, seek, set_nonblocking};
use crate::sys::stat::{Kind, Stat, is_made_up};

/// Opens for the agent to read. The body is the `stat` event.
pub fn open<'a>(fields: &Fields<'a>) -> Outcome<Answer<'a>> {
    let path = path(fields, "path")?;
    // Looked at first: to open a device may already do something.
    regular(&Stat::at(libc::AT_FDCWD, path, 0).map_err(|errno| failed(errno, path))?)?;
    let flags = libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = open_file(path, flags, 0).map_err(|errno| failed(errno, path))?;
    let stat = Stat::of(file.raw()).map_err(|errno| failed(errno, path))?;
    regular(&stat)?;
    if let Some(offset) = fields.optional_number("offset")? {
        seek(&file, offset).map_err(|errno| failed(errno, path))?;
    }
    let event = describe(pack::map().text("kind", "stat"), &stat)
        .number("uid", stat.uid().into())
        .number("gid", stat.gid().into());
    if !is_made_up(file.raw()) {
        return Ok(Answer::Done(event, Some(file)));
    }
    let (out, into) = pipe(0).map_err(|errno| failed(errno, path))?;
    set_nonblocking(out.raw(), true);
    Ok(Answer::Piped(event.flag("piped", true), out, Job::Copy { from: file, to: into }))
}

pub fn regular(stat: &Stat) -> Outcome<()> {
    match stat.kind() {
        Kind::File => Ok(()),
        Kind::Directory => Err(Failure::new(Code::IsDirectory, "it is a directory")),
        kind => Err(Failure::new(Code::NotFile, alloc::format!("it is a {}", kind.as_str()))),
    }
}
