use alloc::vec;
use alloc::vec::Vec;

use super::change::make_parents;
use super::place::Place;
use super::shown;
use super::tar::{BLOCK_BYTES, EXTENSION_BYTES_MAX, Entry, Type, apply_pax, padding, parse_header};
use crate::failure::{Code, Failure, Outcome};
use crate::limits::{ARCHIVE_DIRECTORIES_MAX, PATH_BYTES_MAX};
use crate::pack::{self, Fields, Map};
use crate::sys::fd::Fd;

const COPY_BYTES: usize = 256 << 10;

pub struct Request<'a> {
    path: &'a [u8],
    uid: Option<u32>,
    gid: Option<u32>,
}

impl<'a> Request<'a> {
    pub fn parse(fields: &Fields<'a>) -> Outcome<Request<'a>> {
        let (uid, gid) = (fields.optional_short("uid")?, fields.optional_short("gid")?);
        Ok(Request { path: super::path(fields, "path")?, uid, gid })
    }
}

/// Unpacks below `path`, which is made. Nothing is written outside of it, whatever names and links
/// the archive brings or finds there. What was unpacked before a failure stays.
pub fn unpack(request: &Request<'_>, from: &Fd) -> Outcome<Map> {
    make_parents(&[request.path, b"/."].concat())?;
    let place = Place::open(request.path)?;
    let mut archive = Archive { from, buffer: vec![0; COPY_BYTES] };
    // Times of directories are set when nothing is made in them any more.
    let mut directories: Vec<Entry> = Vec::new();
    let mut count = 0;
    while let Some(mut entry) = archive.next()? {
        entry.uid = request.uid.unwrap_or(entry.uid);
        entry.gid = request.gid.unwrap_or(entry.gid);
        make(&place, &mut archive, &entry)?;
        count += 1;
        if entry.kind == Type::Directory && directories.len() < ARCHIVE_DIRECTORIES_MAX {
            directories.push(entry);
        }
    }
    for directory in directories.iter().rev() {
        let _ = place.set_time(directory);
    }
    archive.drain();
    Ok(pack::map().number("entries", count))
}

fn make(place: &Place, archive: &mut Archive<'_>, entry: &Entry) -> Outcome<()> {
    match entry.kind {
        Type::File => {
            let file = place.file(entry)?;
            archive.copy(&file, entry.size, entry)?;
            place.finish(&file, entry)?;
            return archive.skip(padding(entry.size) as u64);
        }
        Type::Directory => place.directory(entry)?,
        Type::Symlink => place.symlink(entry)?,
        Type::HardLink => place.hard_link(entry)?,
        Type::Fifo => place.fifo(entry)?,
        Type::Device => return Err(refused(entry, "a device")),
        _ => return Err(refused(entry, "an entry of an unknown type")),
    }
    archive.skip(entry.size + padding(entry.size) as u64)
}

pub fn refused(entry: &Entry, what: &'static str) -> Failure {
    Failure::invalid(alloc::format!("{what} in the archive: {}", shown(&entry.name)))
}

struct Archive<'a> {
    from: &'a Fd,
    buffer: Vec<u8>,
}

impl Archive<'_> {
    /// The next entry that stands for a file; extensions are applied to it.
    fn next(&mut self) -> Outcome<Option<Entry>> {
        let (mut records, mut name, mut link) = (Vec::new(), None, None);
        loop {
            let mut block = [0; BLOCK_BYTES];
            if !self.fill(&mut block)? {
                return Err(Failure::invalid("the archive ends without its end mark"));
            }
            let Some(mut entry) = parse_header(&block).map_err(Failure::invalid)? else {
                return Ok(None);
            };
            match entry.kind {
                Type::Pax => records = self.extension(&entry)?,
                Type::PaxGlobal => drop(self.extension(&entry)?),
                Type::LongName => name = Some(self.extension(&entry)?),
                Type::LongLink => link = Some(self.extension(&entry)?),
                _ => {
                    let unended = |text: Vec<u8>| {
                        text.split(|byte| *byte == 0).next().unwrap_or_default().to_vec()
                    };
                    entry.name = name.map_or(entry.name, unended);
                    entry.link = link.map_or(entry.link, unended);
                    apply_pax(&mut entry, &records).map_err(|what| refused(&entry, what))?;
                    return checked(entry).map(Some);
                }
            }
        }
    }

    fn extension(&mut self, entry: &Entry) -> Outcome<Vec<u8>> {
        if entry.size > EXTENSION_BYTES_MAX {
            return Err(Failure::new(Code::TooLarge, "a header of the archive is too long"));
        }
        let mut content = vec![0; entry.size as usize];
        if !self.fill(&mut content)? && entry.size > 0 {
            return Err(cut());
        }
        self.skip(padding(entry.size) as u64)?;
        Ok(content)
    }

    fn copy(&mut self, file: &Fd, size: u64, entry: &Entry) -> Outcome<()> {
        let mut left = size;
        while left > 0 {
            let most = self.buffer.len().min(left as usize);
            let count = self.from.read(&mut self.buffer[..most]).map_err(broken)?;
            if count == 0 {
                return Err(cut());
            }
            let mut bytes = &self.buffer[..count];
            while !bytes.is_empty() {
                let written = file.write(bytes);
                let written =
                    written.map_err(|errno| Failure::system(errno, shown(&entry.name)))?;
                bytes = &bytes[written..];
            }
            left -= count as u64;
        }
        Ok(())
    }

    fn skip(&mut self, count: u64) -> Outcome<()> {
        let mut left = count;
        while left > 0 {
            let most = self.buffer.len().min(left as usize);
            match self.from.read(&mut self.buffer[..most]).map_err(broken)? {
                0 => return Err(cut()),
                count => left -= count as u64,
            }
        }
        Ok(())
    }

    /// What writers put behind the end mark.
    fn drain(&mut self) {
        while matches!(self.from.read(&mut self.buffer), Ok(count) if count > 0) {}
    }

    /// False at the end of the stream, which may only be at the start of `into`.
    fn fill(&mut self, into: &mut [u8]) -> Outcome<bool> {
        let mut filled = 0;
        while filled < into.len() {
            match self.from.read(&mut into[filled..]).map_err(broken)? {
                0 if filled == 0 => return Ok(false),
                0 => return Err(cut()),
                count => filled += count,
            }
        }
        Ok(true)
    }
}

fn checked(entry: Entry) -> Outcome<Entry> {
    let name = &entry.name;
    if name.is_empty() || name.len() > PATH_BYTES_MAX || entry.link.len() > PATH_BYTES_MAX {
        return Err(refused(&entry, "a name that is empty or too long"));
    }
    if name.contains(&0) || entry.link.contains(&0) {
        return Err(refused(&entry, "a name with a NUL byte"));
    }
    if name[0] == b'/' {
        return Err(refused(&entry, "an absolute name"));
    }
    if name.split(|byte| *byte == b'/').any(|part| part == b"..") {
        return Err(refused(&entry, "a name with .."));
    }
    Ok(entry)
}

fn broken(errno: i32) -> Failure {
    Failure::system(errno, "the archive can't be read")
}

fn cut() -> Failure {
    Failure::invalid("the archive is cut off")
}
