//! A directory that files are made in, and never outside of it. Each name is walked part by part
//! over open directories: a link on the way is read and walked too, and counts only where it stays
//! inside. So neither an archive's links nor the world's own, swapped meanwhile, lead out.

use alloc::vec::Vec;

use super::change::read_link_at;
use super::failed;
use super::tar::Entry;
use super::tar_in::refused;
use crate::failure::{Failure, Outcome};
use crate::sys::check;
use crate::sys::fd::{Fd, c_path, open_at, open_directory_at};
use crate::sys::stat::{Kind, Stat};

const LINKS_MAX: usize = 40;

pub struct Place {
    top: Fd,
    /// Without trailing slashes; empty for the root, which holds everything.
    path: Vec<u8>,
}

impl Place {
    pub fn open(path: &[u8]) -> Outcome<Place> {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY;
        let top = open_at(libc::AT_FDCWD, path, flags, 0).map_err(|errno| failed(errno, path))?;
        let mut path = path.to_vec();
        while path.last() == Some(&b'/') {
            path.pop();
        }
        Ok(Place { top, path })
    }

    /// A new, empty file in place of what has its name.
    pub fn file(&self, entry: &Entry) -> Outcome<Fd> {
        let (parent, name) = self.make_way(entry)?;
        self.clear(&parent, &name, entry)?;
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
        open_at(parent.raw(), &name, flags, 0o600).map_err(|errno| failed(errno, &entry.name))
    }

    /// Owner, mode and time, when the content is there.
    pub fn finish(&self, file: &Fd, entry: &Entry) -> Outcome<()> {
        let done = check(unsafe { libc::fchown(file.raw(), entry.uid, entry.gid) })
            .and_then(|_| check(unsafe { libc::fchmod(file.raw(), entry.mode) }))
            .and_then(|_| check(unsafe { libc::futimens(file.raw(), times(entry).as_ptr()) }));
        done.map(|_| ()).map_err(|errno| failed(errno, &entry.name))
    }

    /// A directory that exists is kept and gets the entry's owner and mode.
    pub fn directory(&self, entry: &Entry) -> Outcome<()> {
        let Some((parent, name)) = self.find_way(entry)? else {
            return Ok(());
        };
        let is_directory = Stat::at(parent.raw(), &name, libc::AT_SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| stat.kind() == Kind::Directory);
        if !is_directory {
            self.clear(&parent, &name, entry)?;
            make_directory(&parent, &name).map_err(|errno| failed(errno, &entry.name))?;
        }
        let directory =
            open_directory_at(parent.raw(), &name).map_err(|errno| failed(errno, &entry.name))?;
        self.finish(&directory, entry)
    }

    pub fn set_time(&self, entry: &Entry) -> Outcome<()> {
        let Some((parent, name)) = self.find_way(entry)? else {
            return Ok(());
        };
        self.set_time_at(&parent, &name, entry)
    }

    /// Its target is text, and stays as it is wherever it leads: nothing is ever made through it.
    pub fn symlink(&self, entry: &Entry) -> Outcome<()> {
        let (parent, name) = self.make_way(entry)?;
        self.clear(&parent, &name, entry)?;
        let (target, c_name) = (c_path(&entry.link), c_path(&name));
        let (target, c_name) = (target.unwrap_or_default(), c_name.unwrap_or_default());
        check(unsafe { libc::symlinkat(target.as_ptr(), parent.raw(), c_name.as_ptr()) })
            .map_err(|errno| failed(errno, &entry.name))?;
        self.own(&parent, &name, entry)?;
        self.set_time_at(&parent, &name, entry)
    }

    /// To a file that is inside already.
    pub fn hard_link(&self, entry: &Entry) -> Outcome<()> {
        let target = Entry { name: entry.link.clone(), ..entry.clone() };
        let absolute = target.name.first() == Some(&b'/');
        if absolute || target.name.split(|byte| *byte == b'/').any(|part| part == b"..") {
            return Err(refused(entry, "a link that leads out"));
        }
        let Some((from, old)) = self.find_way(&target)? else {
            return Err(refused(entry, "a link to a directory"));
        };
        let (parent, name) = self.make_way(entry)?;
        self.clear(&parent, &name, entry)?;
        let (old, name) = (c_path(&old).unwrap_or_default(), c_path(&name).unwrap_or_default());
        let linked =
            unsafe { libc::linkat(from.raw(), old.as_ptr(), parent.raw(), name.as_ptr(), 0) };
        check(linked).map(|_| ()).map_err(|errno| failed(errno, &entry.name))
    }

    pub fn fifo(&self, entry: &Entry) -> Outcome<()> {
        let (parent, name) = self.make_way(entry)?;
        self.clear(&parent, &name, entry)?;
        let c_name = c_path(&name).unwrap_or_default();
        let mode = libc::S_IFIFO | entry.mode;
        check(unsafe { libc::mknodat(parent.raw(), c_name.as_ptr(), mode, 0) })
            .map_err(|errno| failed(errno, &entry.name))?;
        self.own(&parent, &name, entry)?;
        self.set_time_at(&parent, &name, entry)
    }

    /// The directory of an entry, made if need be, and its last name.
    fn make_way(&self, entry: &Entry) -> Outcome<(Fd, Vec<u8>)> {
        self.find_way(entry)?.ok_or_else(|| refused(entry, "a name that is the directory itself"))
    }

    /// As above; `None` for the place itself.
    fn find_way(&self, entry: &Entry) -> Outcome<Option<(Fd, Vec<u8>)>> {
        let mut parts = parts(&entry.name);
        let Some(last) = parts.pop() else {
            return Ok(None);
        };
        let mut walk = Walk { place: self, entry, above: Vec::new(), links: 0 };
        // Taken from the end: a link puts its own parts there.
        parts.reverse();
        while let Some(part) = parts.pop() {
            walk.step(part, &mut parts)?;
        }
        Ok(Some((walk.arrive()?, last)))
    }

    /// Removes what is in the way; a directory only when it is empty.
    fn clear(&self, parent: &Fd, name: &[u8], entry: &Entry) -> Outcome<()> {
        let c_name = c_path(name).unwrap_or_default();
        let unlink = |flags| check(unsafe { libc::unlinkat(parent.raw(), c_name.as_ptr(), flags) });
        match unlink(0) {
            Err(libc::EISDIR | libc::EPERM) => unlink(libc::AT_REMOVEDIR),
            Err(libc::ENOENT) => Ok(0),
            done => done,
        }
        .map(|_| ())
        .map_err(|errno| failed(errno, &entry.name))
    }

    fn own(&self, parent: &Fd, name: &[u8], entry: &Entry) -> Outcome<()> {
        let c_name = c_path(name).unwrap_or_default();
        let flags = libc::AT_SYMLINK_NOFOLLOW;
        let owned =
            unsafe { libc::fchownat(parent.raw(), c_name.as_ptr(), entry.uid, entry.gid, flags) };
        check(owned).map(|_| ()).map_err(|errno| failed(errno, &entry.name))
    }

    fn set_time_at(&self, parent: &Fd, name: &[u8], entry: &Entry) -> Outcome<()> {
        let c_name = c_path(name).unwrap_or_default();
        let (times, flags) = (times(entry), libc::AT_SYMLINK_NOFOLLOW);
        let set = unsafe { libc::utimensat(parent.raw(), c_name.as_ptr(), times.as_ptr(), flags) };
        check(set).map(|_| ()).map_err(|errno| failed(errno, &entry.name))
    }
}

/// On the way to an entry: the directories above it that are open, from the place's own on.
struct Walk<'a> {
    place: &'a Place,
    entry: &'a Entry,
    above: Vec<Fd>,
    links: usize,
}

impl Walk<'_> {
    fn step(&mut self, part: Vec<u8>, rest: &mut Vec<Vec<u8>>) -> Outcome<()> {
        if part == b".." {
            let inside = self.above.pop().is_some();
            return if inside { Ok(()) } else { Err(self.out()) };
        }
        let here = self.here();
        let opened = match open_directory_at(here, &part) {
            Err(libc::ENOENT) => {
                make_directory_at(here, &part).and_then(|()| open_directory_at(here, &part))
            }
            opened => opened,
        };
        match opened {
            Ok(directory) => {
                self.above.push(directory);
                Ok(())
            }
            Err(errno) => self.follow(&part, rest, errno),
        }
    }

    fn follow(&mut self, part: &[u8], rest: &mut Vec<Vec<u8>>, errno: i32) -> Outcome<()> {
        let Ok(target) = read_link_at(self.here(), part) else {
            return Err(failed(errno, &self.entry.name));
        };
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(refused(self.entry, "a name over links that lead in a circle"));
        }
        let mut target = &target[..];
        if target.first() == Some(&b'/') {
            let inside = target.strip_prefix(&self.place.path[..]);
            target = inside
                .filter(|inside| matches!(inside.first(), None | Some(&b'/')))
                .ok_or_else(|| self.out())?;
            self.above.clear();
        }
        let mut more = parts(target);
        more.reverse();
        rest.extend(more);
        Ok(())
    }

    fn here(&self) -> i32 {
        self.above.last().unwrap_or(&self.place.top).raw()
    }

    fn arrive(mut self) -> Outcome<Fd> {
        match self.above.pop() {
            Some(directory) => Ok(directory),
            None => open_directory_at(self.place.top.raw(), b".")
                .map_err(|errno| failed(errno, &self.entry.name)),
        }
    }

    fn out(&self) -> Failure {
        refused(self.entry, "a name over a link that leads out")
    }
}

/// Names of a path, without empty ones and dots.
fn parts(path: &[u8]) -> Vec<Vec<u8>> {
    let parts = path.split(|byte| *byte == b'/');
    parts.filter(|part| !part.is_empty() && *part != b".").map(<[u8]>::to_vec).collect()
}

fn make_directory(parent: &Fd, name: &[u8]) -> Result<(), i32> {
    make_directory_at(parent.raw(), name)
}

fn make_directory_at(parent: i32, name: &[u8]) -> Result<(), i32> {
    let name = c_path(name)?;
    match check(unsafe { libc::mkdirat(parent, name.as_ptr(), 0o755) }) {
        Ok(_) | Err(libc::EEXIST) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Access time as modification time: the archive has no other.
fn times(entry: &Entry) -> [libc::timespec; 2] {
    let (tv_sec, tv_nsec) = entry.modified;
    [libc::timespec { tv_sec, tv_nsec }; 2]
}
