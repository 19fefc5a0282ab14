use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use super::change::read_link_at;
use super::failed;
use super::tar::{BLOCK_BYTES, Entry, Type, padding, write_header};
use crate::failure::{Code, Failure, Outcome};
use crate::limits::{ARCHIVE_LINKS_MAX, DEPTH_MAX};
use crate::pack::{self, Map};
use crate::sys::directory::Entries;
use crate::sys::fd::{Fd, open_at, open_directory_at, write_all_blocking};
use crate::sys::stat::{Kind, Stat};

const COPY_BYTES: usize = 256 << 10;

/// The content of a directory, or one file, as a pax tar. Sockets and devices are left out, and what
/// vanishes meanwhile. A file that changes while it is read keeps the size that its header tells.
pub fn write(path: &[u8], to: &Fd) -> Outcome<Map> {
    let stat = Stat::at(libc::AT_FDCWD, path, 0).map_err(|errno| failed(errno, path))?;
    let mut archive =
        Archive { to, entries: 0, links: BTreeMap::new(), buffer: vec![0; COPY_BYTES] };
    match stat.kind() {
        Kind::Directory => archive.tree(path)?,
        _ => {
            let named = path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
            archive.add(libc::AT_FDCWD, path, &path[named..], 0)?;
        }
    }
    archive.send(&[0; 2 * BLOCK_BYTES])?;
    Ok(pack::map().number("entries", archive.entries))
}

struct Archive<'a> {
    to: &'a Fd,
    entries: u64,
    /// First name of each file that has several.
    links: BTreeMap<(u64, u64), Vec<u8>>,
    buffer: Vec<u8>,
}

impl Archive<'_> {
    fn tree(&mut self, path: &[u8]) -> Outcome<()> {
        let top = Entries::open(path).map_err(|errno| failed(errno, path))?;
        // Directories from the top to where we are, each with the name that its entries begin with.
        let mut open: Vec<(Entries, Vec<u8>)> = [(top, Vec::new())].into();
        while let Some((entries, prefix)) = open.last_mut() {
            let Some(name) = entries.next() else {
                open.pop();
                continue;
            };
            let directory = entries.descriptor();
            let full = [&prefix[..], &name[..]].concat();
            let kind = self.add(directory, &name, &full, libc::AT_SYMLINK_NOFOLLOW)?;
            if kind != Some(Kind::Directory) {
                continue;
            }
            if open.len() >= DEPTH_MAX {
                return Err(Failure::new(Code::TooLarge, "directories are nested too deep"));
            }
            if let Ok(below) = open_directory_at(directory, &name).and_then(Entries::of) {
                open.push((below, [&full[..], b"/"].concat()));
            }
        }
        Ok(())
    }

    /// One entry; `None` where it is left out.
    fn add(
        &mut self,
        directory: i32,
        name: &[u8],
        full: &[u8],
        follow: i32,
    ) -> Outcome<Option<Kind>> {
        let Ok(stat) = Stat::at(directory, name, follow) else {
            return Ok(None);
        };
        let kind = match stat.kind() {
            Kind::File => Type::File,
            Kind::Directory => Type::Directory,
            Kind::Symlink => Type::Symlink,
            Kind::Fifo => Type::Fifo,
            Kind::Socket | Kind::Device => return Ok(None),
        };
        let mut entry = Entry {
            kind,
            name: full.to_vec(),
            link: Vec::new(),
            mode: stat.mode(),
            uid: stat.uid(),
            gid: stat.gid(),
            size: 0,
            modified: stat.modified(),
        };
        match stat.kind() {
            Kind::Directory => entry.name.push(b'/'),
            Kind::Symlink => match read_link_at(directory, name) {
                Ok(target) => entry.link = target,
                Err(_) => return Ok(None),
            },
            Kind::File => return self.add_file(directory, name, entry, &stat).map(Some),
            _ => {}
        }
        self.head(&entry)?;
        Ok(Some(stat.kind()))
    }

    fn add_file(
        &mut self,
        directory: i32,
        name: &[u8],
        mut entry: Entry,
        stat: &Stat,
    ) -> Outcome<Kind> {
        if stat.links() > 1 {
            if let Some(first) = self.links.get(&stat.identity()) {
                (entry.kind, entry.link) = (Type::HardLink, first.clone());
                self.head(&entry)?;
                return Ok(Kind::File);
            }
            if self.links.len() < ARCHIVE_LINKS_MAX {
                self.links.insert(stat.identity(), entry.name.clone());
            }
        }
        let flags = libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY;
        let Ok(file) = open_at(directory, name, flags, 0) else {
            return Ok(Kind::File);
        };
        // Names may have been swapped since: only what is open counts.
        let Some(stat) = Stat::of(file.raw()).ok().filter(|stat| stat.kind() == Kind::File) else {
            return Ok(Kind::File);
        };
        entry.size = stat.size();
        self.head(&entry)?;
        self.copy(&file, entry.size)?;
        Ok(Kind::File)
    }

    fn head(&mut self, entry: &Entry) -> Outcome<()> {
        let mut header = Vec::new();
        write_header(&mut header, entry);
        self.entries += 1;
        self.send(&header)
    }

    fn copy(&mut self, file: &Fd, size: u64) -> Outcome<()> {
        let mut left = size;
        while left > 0 {
            let most = self.buffer.len().min(left as usize);
            let count = match file.read(&mut self.buffer[..most]) {
                Ok(count) if count > 0 => count,
                // Cut short meanwhile.
                _ => {
                    self.buffer[..most].fill(0);
                    most
                }
            };
            if !write_all_blocking(self.to.raw(), &self.buffer[..count]) {
                return Err(unread());
            }
            left -= count as u64;
        }
        self.send(&[0; BLOCK_BYTES][..padding(size)])
    }

    fn send(&self, bytes: &[u8]) -> Outcome<()> {
        if write_all_blocking(self.to.raw(), bytes) { Ok(()) } else { Err(unread()) }
    }
}

fn unread() -> Failure {
    Failure::system(libc::EPIPE, "nobody reads the archive any more")
}
