//! What a world changed, as a tar: its own layer, told against what lies below it.
//!
//! Three directories are walked side by side. **upper** is the world's own layer: it says which names were
//! touched. **shown** is what the world sees: attributes and contents come from there, since the overlay
//! fills a file of the upper bit by bit while it copies it up, and shows it only when it is whole. **below**
//! is what lies under the upper: it says what a deletion hides.
//!
//! A deletion is a character device 0/0. A layer has no mark for a directory that replaced another one, so
//! each name that such a directory hides is written as a deletion, all the way down.

mod holes;
mod level;
mod links;
mod output;
mod walk;

use alloc::vec::Vec;

use crate::failure::{Failure, Outcome};
use crate::limits::{EXCLUDED_MAX, PATH_BYTES_MAX};
use crate::pack::{Fields, Map};
use crate::sys::fd::{Fd, open};
use level::Level;
use walk::Walk;

pub struct Request {
    /// Paths without slashes at either end.
    excluded: Vec<Vec<u8>>,
    to: Fd,
    upper: Fd,
    below: Fd,
}

impl Request {
    /// The descriptors are the agent's: a pipe, and the directories that are none of the world's.
    pub fn parse(fields: &Fields<'_>, descriptors: Vec<Fd>) -> Outcome<Request> {
        let [to, upper, below] = <[Fd; 3]>::try_from(descriptors)
            .map_err(|_| Failure::system(libc::EIO, "descriptors were lost on the way"))?;
        let paths = fields.list("exclude")?;
        if paths.len() > EXCLUDED_MAX {
            return Err(Failure::invalid("exclude has too many paths"));
        }
        let excluded = paths.into_iter().map(parse_excluded).collect::<Outcome<_>>()?;
        Ok(Request { excluded, to, upper, below })
    }

    pub fn descriptors(&self) -> [i32; 3] {
        [self.to.raw(), self.upper.raw(), self.below.raw()]
    }

    pub fn write(self) -> Outcome<Map> {
        let shown = open(b"/", libc::O_RDONLY | libc::O_DIRECTORY, 0)
            .map_err(|errno| Failure::system(errno, "/"))?;
        let top = Level::top(self.upper, shown, self.below)?;
        Walk::new(&self.excluded, &self.to, top).run()
    }
}

fn parse_excluded(path: &[u8]) -> Outcome<Vec<u8>> {
    let parts: Vec<&[u8]> =
        path.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".").collect();
    let wrong = parts.is_empty() || parts.contains(&&b".."[..]) || path.len() > PATH_BYTES_MAX;
    match wrong || path[0] != b'/' {
        true => {
            Err(Failure::invalid("a path of exclude is absolute, without .., and not / itself"))
        }
        false => Ok(parts.join(&b'/')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excluded_paths() {
        assert_eq!(parse_excluded(b"/tmp").unwrap(), b"tmp");
        assert_eq!(parse_excluded(b"//a/./b//").unwrap(), b"a/b");
        for wrong in [&b""[..], b"/", b"/.", b"tmp", b"/a/../b"] {
            assert!(parse_excluded(wrong).is_err(), "{wrong:?}");
        }
    }
}
