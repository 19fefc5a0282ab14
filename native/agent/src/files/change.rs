use super::{Answer, describe, failed, nothing, path};
use crate::failure::{Failure, Outcome};
use crate::pack::{self, Fields};
use crate::sys::check;
use crate::sys::fd::c_path;
use crate::sys::stat::{Kind, Stat};

pub fn stat<'a>(fields: &Fields<'a>) -> Outcome<Answer<'a>> {
    let path = path(fields, "path")?;
    let flags = if fields.flag("follow")? { 0 } else { libc::AT_SYMLINK_NOFOLLOW };
    let stat = Stat::at(libc::AT_FDCWD, path, flags).map_err(|errno| failed(errno, path))?;
    let mut map = describe(pack::map().text("kind", stat.kind().as_str()), &stat)
        .number("uid", stat.uid().into())
        .number("gid", stat.gid().into());
    if stat.kind() == Kind::Symlink {
        map = map.bytes("target", &read_link(path).map_err(|errno| failed(errno, path))?);
    }
    Ok(Answer::Done(map, None))
}

pub fn make_directory<'a>(fields: &Fields<'a>) -> Outcome<Answer<'a>> {
    let path = path(fields, "path")?;
    let mode = fields.optional_short("mode")?;
    let parents = fields.flag("parents")?;
    if parents {
        make_parents(path)?;
    }
    match make(path, mode.unwrap_or(0o755) & 0o7777) {
        Ok(()) => {}
        Err(libc::EEXIST) if parents && is_directory(path) => return Ok(nothing()),
        Err(errno) => return Err(failed(errno, path)),
    }
    if let Some(mode) = mode {
        set_mode(path, mode)?;
    }
    Ok(nothing())
}

pub fn rename<'a>(fields: &Fields<'a>) -> Outcome<Answer<'a>> {
    let (from, to) = (path(fields, "from")?, path(fields, "to")?);
    let (c_from, c_to) = (c_path(from).unwrap_or_default(), c_path(to).unwrap_or_default());
    check(unsafe { libc::rename(c_from.as_ptr(), c_to.as_ptr()) })
        .map_err(|errno| failed(errno, from))?;
    Ok(nothing())
}

pub fn chmod<'a>(fields: &Fields<'a>) -> Outcome<Answer<'a>> {
    let path = path(fields, "path")?;
    let mode = fields.optional_short("mode")?.ok_or_else(|| Failure::invalid("mode is missing"))?;
    set_mode(path, mode)?;
    Ok(nothing())
}

/// Every directory above `path` that isn't there yet.
pub fn make_parents(path: &[u8]) -> Outcome<()> {
    let ends = path.iter().enumerate().filter(|(at, byte)| **byte == b'/' && *at > 0);
    for (end, _) in ends {
        let parent = &path[..end];
        // The path ends in slashes: what is above the last name is all that's wanted.
        if path[end..].iter().all(|byte| *byte == b'/') {
            break;
        }
        match make(parent, 0o755) {
            Ok(()) | Err(libc::EEXIST) => {}
            Err(errno) => return Err(failed(errno, parent)),
        }
    }
    Ok(())
}

fn make(path: &[u8], mode: u32) -> Result<(), i32> {
    let path = c_path(path)?;
    check(unsafe { libc::mkdir(path.as_ptr(), mode) }).map(|_| ())
}

fn is_directory(path: &[u8]) -> bool {
    Stat::at(libc::AT_FDCWD, path, 0).is_ok_and(|stat| stat.kind() == Kind::Directory)
}

fn set_mode(path: &[u8], mode: u32) -> Outcome<()> {
    let c_path = c_path(path).map_err(|errno| failed(errno, path))?;
    check(unsafe { libc::chmod(c_path.as_ptr(), mode & 0o7777) })
        .map_err(|errno| failed(errno, path))?;
    Ok(())
}

pub fn read_link(path: &[u8]) -> Result<alloc::vec::Vec<u8>, i32> {
    read_link_at(libc::AT_FDCWD, path)
}

pub fn read_link_at(directory: i32, name: &[u8]) -> Result<alloc::vec::Vec<u8>, i32> {
    let name = c_path(name)?;
    let mut target = alloc::vec![0; 4096];
    let count = check(unsafe {
        libc::readlinkat(directory, name.as_ptr(), target.as_mut_ptr().cast(), target.len())
    } as i64)?;
    target.truncate(count as usize);
    Ok(target)
}
