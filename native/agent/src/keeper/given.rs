//! What of the machine a world is given, such as a GPU: device nodes of the agent's own `/dev`, and files that the host has mounted
//! below `/given`, at the same path in the world. Read-only, and nothing else of either.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::open::cover;
use super::prepare::directory;
use crate::failure::{Failure, Outcome};
use crate::files::change::read_link;
use crate::pack::Fields;
use crate::sys::check;
use crate::sys::fd::{self, c_path};
use crate::sys::mount;
use crate::sys::stat::{Kind, Stat};
use crate::worlds::paths::GIVEN;

/// More steps than the links of any tree that can be walked.
const STEPS_MAX: usize = 256;

pub fn show(root: &str, fields: &Fields<'_>) -> Outcome<()> {
    if fields.find("devices").is_some() {
        show_devices(root, &fields.list("devices")?)?;
    }
    if fields.find("given").is_some() {
        for path in fields.list("given")? {
            show_file(root, path)?;
        }
    }
    Ok(())
}

/// Names below `/dev`, where the world's own is read-only already.
fn show_devices(root: &str, names: &[&[u8]]) -> Outcome<()> {
    let place = format!("{root}/dev");
    let failed = |errno| Failure::system(errno, "the world's /dev");
    mount::make_writable(place.as_bytes(), libc::MS_NOSUID).map_err(failed)?;
    for name in names {
        let parts = parts_of(name)?;
        for depth in 1..parts.len() {
            directory(&format!("{place}/{}", text(&parts[..depth].join(&b'/'))), 0o755)?;
        }
        let name = text(&parts.join(&b'/'));
        let node = Stat::at(libc::AT_FDCWD, format!("/dev/{name}").as_bytes(), 0)
            .map_err(|errno| Failure::system(errno, format!("/dev/{name}")))?;
        if node.kind() != Kind::Device {
            return Err(Failure::invalid(format!("/dev/{name} is no device")));
        }
        let path = format!("{place}/{name}");
        let c_path = c_path(path.as_bytes()).unwrap_or_default();
        let made = |errno| Failure::system(errno, path.clone());
        check(unsafe { libc::mknod(c_path.as_ptr(), node.device_mode(), node.device()) })
            .map_err(made)?;
        check(unsafe { libc::chmod(c_path.as_ptr(), node.mode()) }).map_err(made)?;
    }
    mount::make_read_only(place.as_bytes(), libc::MS_NOSUID).map_err(failed)
}

/// Where programs look for name servers, wherever a link of the image has it.
pub fn show_name_servers(root: &str, source: &str) -> Outcome<()> {
    cover(&place_in(root, parts_of(b"/etc/resolv.conf")?, false)?, source)
}

/// Over what the image has there; made where it has nothing.
fn show_file(root: &str, path: &[u8]) -> Outcome<()> {
    let source = format!("{GIVEN}/{}", text(&parts_of(path)?.join(&b'/')));
    let kind = Stat::at(libc::AT_FDCWD, source.as_bytes(), libc::AT_SYMLINK_NOFOLLOW)
        .map_err(|errno| Failure::system(errno, source.clone()))?
        .kind();
    let place = place_in(root, parts_of(path)?, kind == Kind::Directory)?;
    cover(&place, &source)?;
    let flags = libc::MS_NOSUID | libc::MS_NODEV;
    mount::make_read_only(place.as_bytes(), flags).map_err(|errno| Failure::system(errno, place))
}

/// Where a path of the world is, seen from outside of it: a link of the image leads no further than the world. Nothing of the world runs yet.
fn place_in(root: &str, parts: Vec<&[u8]>, is_directory: bool) -> Outcome<String> {
    let mut ahead: Vec<Vec<u8>> = parts.iter().rev().map(|part| part.to_vec()).collect();
    let mut behind: Vec<String> = vec![];
    for _ in 0..STEPS_MAX {
        let Some(part) = ahead.pop() else {
            return Ok(format!("{root}/{}", behind.join("/")));
        };
        match part.as_slice() {
            b"" | b"." => continue,
            b".." => {
                behind.pop();
                continue;
            }
            part => behind.push(text(part)),
        }
        let path = format!("{root}/{}", behind.join("/"));
        match Stat::at(libc::AT_FDCWD, path.as_bytes(), libc::AT_SYMLINK_NOFOLLOW) {
            Ok(stat) if stat.kind() == Kind::Symlink => {
                let target = read_link(path.as_bytes())
                    .map_err(|errno| Failure::system(errno, path.clone()))?;
                behind.pop();
                if target.first() == Some(&b'/') {
                    behind.clear();
                }
                ahead.extend(target.split(|byte| *byte == b'/').rev().map(<[u8]>::to_vec));
            }
            Ok(_) => {}
            Err(libc::ENOENT) if !ahead.is_empty() || is_directory => directory(&path, 0o755)?,
            Err(libc::ENOENT) => {
                let flags = libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY;
                fd::open(path.as_bytes(), flags, 0o644)
                    .map_err(|errno| Failure::system(errno, path.clone()))?;
            }
            Err(errno) => return Err(Failure::system(errno, path)),
        }
    }
    Err(Failure::invalid("links of the image lead in a circle"))
}

/// Of an absolute path or one below a directory: plain names alone.
fn parts_of(path: &[u8]) -> Outcome<Vec<&[u8]>> {
    let path = path.strip_prefix(b"/").unwrap_or(path);
    let parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
    if parts.iter().any(|part| matches!(*part, b"" | b"." | b"..")) {
        return Err(Failure::invalid("a path of what is given is not plain"));
    }
    Ok(parts)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
