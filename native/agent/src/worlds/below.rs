//! The two sides of a world's overlay, for who compares them: its own layer, and all that lies below.

use alloc::vec::Vec;

use super::paths;
use crate::agent::Agent;
use crate::failure::{Failure, Outcome};
use crate::sys::check;
use crate::sys::fd::{Fd, c_path, open};
use crate::sys::mount::{NO_SUID_DEV_EXEC, mount};

const DIRECTORY: i32 = libc::O_RDONLY | libc::O_DIRECTORY;

impl Agent {
    pub fn open_upper(&self, world: usize) -> Outcome<Fd> {
        let place = paths::upper_files(&self.worlds[world].name);
        open(place.as_bytes(), DIRECTORY, 0).map_err(|errno| Failure::system(errno, place))
    }

    /// Several layers are seen as one through an overlay without an upper, mounted when first asked for.
    pub fn open_below(&self, world: usize) -> Outcome<Fd> {
        let known = &self.worlds[world];
        let place = match &known.lowers[..] {
            [only] => only.clone(),
            lowers => merged(&paths::below(&known.name), lowers)?,
        };
        let failed = |errno| Failure::system(errno, "what lies below the world");
        open(&place, DIRECTORY, 0).map_err(failed)
    }
}

fn merged(place: &str, lowers: &[Vec<u8>]) -> Outcome<Vec<u8>> {
    let failed = |errno| Failure::system(errno, "overlay of what lies below the world");
    let path = c_path(place.as_bytes()).map_err(failed)?;
    match check(unsafe { libc::mkdir(path.as_ptr(), 0o755) }) {
        Ok(_) => {
            let options = [b"lowerdir=", &lowers.join(&b':')[..]].concat();
            mount(
                b"overlay",
                place.as_bytes(),
                "overlay",
                libc::MS_RDONLY | NO_SUID_DEV_EXEC,
                &options,
            )
            .inspect_err(|_| unsafe {
                libc::rmdir(path.as_ptr());
            })
            .map_err(failed)?;
        }
        Err(libc::EEXIST) => {}
        Err(errno) => return Err(failed(errno)),
    }
    Ok(place.as_bytes().to_vec())
}
