//! One directory of the walk, in the three views.

use alloc::vec::Vec;

use crate::failure::Outcome;
use crate::files::failed;
use crate::files::tar::Entry;
use crate::sys::directory::Entries;
use crate::sys::fd::{Fd, open_at, open_directory_at};
use crate::sys::overlay::is_opaque;
use crate::sys::stat::Stat;

pub struct Level {
    pub upper: Entries,
    pub shown: Fd,
    /// `None` where nothing below has this directory.
    pub below: Option<Fd>,
    /// Nothing that lies below is seen: it replaced another directory, or lies in one that did.
    pub hides: bool,
    /// What the names of its entries begin with.
    pub prefix: Vec<u8>,
    /// Its own entry, until something in it is told or it is known to be changed itself.
    pub pending: Option<Entry>,
}

impl Level {
    pub fn top(upper: Fd, shown: Fd, below: Fd) -> Outcome<Level> {
        let upper = Entries::of(upper).map_err(|errno| failed(errno, b"/"))?;
        let below = Some(below);
        Ok(Level { upper, shown, below, hides: false, prefix: Vec::new(), pending: None })
    }

    /// A directory of this one. `None` where it is gone, or is no directory any more.
    pub fn open_within(&self, name: &[u8], full: &[u8]) -> Outcome<Option<Level>> {
        let open = |directory: i32| match open_directory_at(directory, name) {
            Ok(opened) => Ok(Some(opened)),
            Err(libc::ENOENT | libc::ENOTDIR | libc::ELOOP | libc::ENXIO) => Ok(None),
            Err(errno) => Err(failed(errno, full)),
        };
        // In this order: a new directory is marked before the world sees it.
        let Some(shown) = open(self.shown.raw())? else {
            return Ok(None);
        };
        let Some(upper) = open(self.upper.descriptor())? else {
            return Ok(None);
        };
        let below = match &self.below {
            Some(below) => open(below.raw())?,
            None => None,
        };
        let hides = self.hides || is_opaque(upper.raw()).map_err(|errno| failed(errno, full))?;
        let upper = Entries::of(upper).map_err(|errno| failed(errno, full))?;
        let prefix = [full, b"/"].concat();
        Ok(Some(Level { upper, shown, below, hides, prefix, pending: None }))
    }

    pub fn has_below(&self, name: &[u8]) -> bool {
        let no_follow = libc::AT_SYMLINK_NOFOLLOW;
        self.below.as_ref().is_some_and(|below| Stat::at(below.raw(), name, no_follow).is_ok())
    }

    /// The names below that this directory hides, all of them.
    pub fn names_below(&self) -> Result<Option<Entries>, i32> {
        match &self.below {
            Some(below) if self.hides => {
                let again = open_at(below.raw(), b".", libc::O_RDONLY | libc::O_DIRECTORY, 0)?;
                Entries::of(again).map(Some)
            }
            _ => Ok(None),
        }
    }
}
