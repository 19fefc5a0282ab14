//! The walk over the touched names, depth first, and what is written of each.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::holes::{DataMap, LOOKED_AT_BYTES};
use super::level::Level;
use super::links::Links;
use super::output::Output;
use crate::failure::{Code, Failure, Outcome};
use crate::files::change::read_link_at;
use crate::files::failed;
use crate::files::tar::{BLOCK_BYTES, Entry, Type};
use crate::limits::{DEPTH_MAX, LAYER_FILE_BYTES_MAX};
use crate::pack::{self, Map};
use crate::sys::attributes::attribute_names;
use crate::sys::fd::{Fd, open_at, seek};
use crate::sys::stat::{Kind, Stat};

/// Mount points of every world: what is seen there is no file of its.
const MOUNTED: [&[u8]; 3] = [b"dev", b"proc", b"sys"];
const NO_FOLLOW: i32 = libc::AT_SYMLINK_NOFOLLOW;

pub struct Walk<'a> {
    excluded: &'a [Vec<u8>],
    output: Output<'a>,
    links: Links,
    /// From the root to where it stands.
    open: Vec<Level>,
}

impl<'a> Walk<'a> {
    pub fn new(excluded: &'a [Vec<u8>], to: &'a Fd, top: Level) -> Walk<'a> {
        let output = Output::new(to);
        Walk { excluded, output, links: Links::default(), open: [top].into() }
    }

    pub fn run(mut self) -> Outcome<Map> {
        while let Some(level) = self.open.last_mut() {
            match level.upper.next() {
                Some(name) => self.visit(&name)?,
                None => {
                    self.hide_the_rest()?;
                    self.open.pop();
                }
            }
        }
        self.output.put(&[0; 2 * BLOCK_BYTES])?;
        self.output.flush()?;
        Ok(pack::map().number("entries", self.output.entries))
    }

    fn here(&self) -> &Level {
        &self.open[self.open.len() - 1]
    }

    fn full(&self, name: &[u8]) -> Vec<u8> {
        [&self.here().prefix[..], name].concat()
    }

    fn is_excluded(&self, full: &[u8]) -> bool {
        self.excluded.iter().any(|path| path == full)
    }

    fn visit(&mut self, name: &[u8]) -> Outcome<()> {
        if self.open.len() == 1 && MOUNTED.contains(&name) {
            return Ok(());
        }
        let full = self.full(name);
        let shown = self.here().shown.raw();
        let excluded = self.is_excluded(&full);
        match Stat::at(shown, name, NO_FOLLOW) {
            Ok(stat) if excluded => self.leave_out(name, full, &stat),
            Err(_) if excluded => Ok(()),
            Ok(stat) => match stat.kind() {
                Kind::Directory => self.enter(name, full),
                Kind::File => self.file(name, full),
                Kind::Symlink => match read_link_at(shown, name) {
                    Ok(link) => {
                        let entry = Entry { link, ..described(Type::Symlink, full, &stat) };
                        self.linkable(name, entry, &stat).map(|_| ())
                    }
                    Err(_) => self.gone(name, full),
                },
                Kind::Fifo => {
                    let entry = described(Type::Fifo, full, &stat);
                    self.linkable(name, entry, &stat).map(|_| ())
                }
                // They mean nothing without the process behind them, but hide what was there.
                Kind::Socket | Kind::Device => self.gone(name, full),
            },
            Err(libc::ENOENT) => self.gone(name, full),
            Err(errno) => Err(failed(errno, &full)),
        }
    }

    /// As if nothing had been done there; a directory that is new is empty.
    fn leave_out(&mut self, name: &[u8], full: Vec<u8>, stat: &Stat) -> Outcome<()> {
        if stat.kind() != Kind::Directory || self.here().has_below(name) {
            return Ok(());
        }
        self.head(&described(Type::Directory, full, stat))
    }

    /// The world doesn't have this name, whether for long or since a moment.
    fn gone(&mut self, name: &[u8], full: Vec<u8>) -> Outcome<()> {
        if self.here().has_below(name) { self.head(&deletion(full)) } else { Ok(()) }
    }

    fn enter(&mut self, name: &[u8], full: Vec<u8>) -> Outcome<()> {
        if self.open.len() >= DEPTH_MAX {
            return Err(Failure::new(Code::TooLarge, "directories are nested too deep"));
        }
        let Some(mut level) = self.here().open_within(name, &full)? else {
            return self.gone(name, full);
        };
        let stat = Stat::of(level.shown.raw()).map_err(|errno| failed(errno, &full))?;
        let below = level.below.as_ref().and_then(|below| Stat::of(below.raw()).ok());
        let unchanged = below.is_some_and(|below| stat.has_same_attributes(&below));
        // Nothing below has any: it was given them.
        let unchanged = unchanged && attribute_names(level.shown.raw()).is_empty();
        level.pending = Some(described(Type::Directory, full, &stat));
        self.open.push(level);
        if unchanged { Ok(()) } else { self.tell_pending() }
    }

    fn file(&mut self, name: &[u8], full: Vec<u8>) -> Outcome<()> {
        let flags = libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
        let file = match open_at(self.here().shown.raw(), name, flags, 0) {
            Ok(file) => file,
            Err(libc::ENOENT | libc::ELOOP | libc::ENXIO) => return self.gone(name, full),
            Err(errno) => return Err(failed(errno, &full)),
        };
        // Names may have been swapped since: only what is open counts.
        let stat = Stat::of(file.raw()).map_err(|errno| failed(errno, &full))?;
        if stat.kind() != Kind::File {
            return self.gone(name, full);
        }
        let (size, entry) = (stat.size(), described(Type::File, full, &stat));
        if size > LAYER_FILE_BYTES_MAX {
            return Err(too_long(&entry.name, size));
        }
        if stat.links() > 1 && self.is_told(name, &entry, &stat)? {
            return Ok(());
        }
        if size >= LOOKED_AT_BYTES {
            if let Some(map) = DataMap::of(&file, size) {
                return self.sparse(&file, &map, entry, size);
            }
            seek(&file, 0).map_err(|errno| failed(errno, &entry.name))?;
        }
        self.tell_pending()?;
        self.output.head(&Entry { size, ..entry.clone() }, &records_of(&file))?;
        self.output.copy(&file, size, &entry.name)?;
        self.output.pad(size)
    }

    fn sparse(&mut self, file: &Fd, map: &DataMap, entry: Entry, size: u64) -> Outcome<()> {
        let text = map.text();
        let whole = alloc::format!("{size}");
        let mut records = records_of(file);
        records.push((String::from("GNU.sparse.major"), b"1".to_vec()));
        records.push((String::from("GNU.sparse.minor"), b"0".to_vec()));
        records.push((String::from("GNU.sparse.name"), entry.name.clone()));
        records.push((String::from("GNU.sparse.realsize"), whole.into_bytes()));
        let stored = text.len() as u64 + map.data_bytes();
        self.tell_pending()?;
        self.output.head(&Entry { size: stored, ..entry.clone() }, &records)?;
        self.output.put(&text)?;
        for (offset, length) in map.regions() {
            seek(file, *offset).map_err(|errno| failed(errno, &entry.name))?;
            self.output.copy(file, *length, &entry.name)?;
        }
        self.output.pad(stored)
    }

    fn linkable(&mut self, name: &[u8], entry: Entry, stat: &Stat) -> Outcome<()> {
        if stat.links() > 1 && self.is_told(name, &entry, stat)? {
            return Ok(());
        }
        self.head(&entry)
    }

    /// Writes a second name of what was told before. Only the upper knows which file is which.
    fn is_told(&mut self, name: &[u8], entry: &Entry, stat: &Stat) -> Outcome<bool> {
        let Ok(upper) = Stat::at(self.here().upper.descriptor(), name, NO_FOLLOW) else {
            return Ok(false);
        };
        let Some(link) = self.links.meet(upper.identity(), stat.links(), &entry.name) else {
            return Ok(false);
        };
        self.head(&Entry { kind: Type::HardLink, link, ..entry.clone() })?;
        Ok(true)
    }

    /// What lies below a directory that replaced another, and has no name in it.
    fn hide_the_rest(&mut self) -> Outcome<()> {
        let names = self.here().names_below();
        let names = names.map_err(|errno| failed(errno, &self.here().prefix))?;
        for name in names.into_iter().flatten() {
            let full = self.full(&name);
            let touched = Stat::at(self.here().upper.descriptor(), &name, NO_FOLLOW).is_ok();
            if !touched && !self.is_excluded(&full) {
                self.head(&deletion(full))?;
            }
        }
        Ok(())
    }

    fn head(&mut self, entry: &Entry) -> Outcome<()> {
        self.tell_pending()?;
        self.output.head(entry, &[])
    }

    fn tell_pending(&mut self) -> Outcome<()> {
        for level in &mut self.open {
            if let Some(entry) = level.pending.take() {
                self.output.head(&entry, &records_of(&level.shown))?;
            }
        }
        Ok(())
    }
}

fn too_long(path: &[u8], size: u64) -> Failure {
    let (shown, most) = (String::from_utf8_lossy(path), LAYER_FILE_BYTES_MAX >> 30);
    let length = size >> 30;
    Failure::new(
        Code::TooLarge,
        format!(
            "/{shown} is {length} GiB long, holes included; a file of a layer has {most} GiB at most"
        ),
    )
}

/// Names of extended attributes, as star writes them, without their values: a layer can't have them, and who makes it says so.
fn records_of(file: &Fd) -> Vec<(String, Vec<u8>)> {
    let names = attribute_names(file.raw());
    names.iter().map(|name| (format!("SCHILY.xattr.{name}"), Vec::new())).collect()
}

fn described(kind: Type, mut name: Vec<u8>, stat: &Stat) -> Entry {
    if kind == Type::Directory {
        name.push(b'/');
    }
    let (uid, gid, modified) = (stat.uid(), stat.gid(), stat.modified());
    Entry { kind, name, link: Vec::new(), mode: stat.mode(), uid, gid, size: 0, modified }
}

fn deletion(name: Vec<u8>) -> Entry {
    let kind = Type::Device;
    Entry { kind, name, link: Vec::new(), mode: 0, uid: 0, gid: 0, size: 0, modified: (0, 0) }
}
