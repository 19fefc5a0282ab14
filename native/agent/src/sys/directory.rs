use alloc::vec::Vec;

use super::fd::{Fd, open_at};

/// The names in a directory, without `.` and `..`, one by one: a huge one is never held whole.
pub struct Entries {
    stream: *mut libc::DIR,
}

impl Entries {
    pub fn of(directory: Fd) -> Result<Entries, i32> {
        let stream = unsafe { libc::fdopendir(directory.raw()) };
        if stream.is_null() {
            return Err(super::errno());
        }
        core::mem::forget(directory);
        Ok(Entries { stream })
    }

    pub fn open(path: &[u8]) -> Result<Entries, i32> {
        Entries::of(open_at(libc::AT_FDCWD, path, libc::O_RDONLY | libc::O_DIRECTORY, 0)?)
    }

    /// For calls that take names of this directory.
    pub fn descriptor(&self) -> i32 {
        unsafe { libc::dirfd(self.stream) }
    }
}

impl Iterator for Entries {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            let entry = unsafe { libc::readdir(self.stream) };
            if entry.is_null() {
                return None;
            }
            let name = unsafe { core::ffi::CStr::from_ptr((*entry).d_name.as_ptr()) }.to_bytes();
            if name != b"." && name != b".." {
                return Some(name.to_vec());
            }
        }
    }
}

impl Drop for Entries {
    fn drop(&mut self) {
        unsafe { libc::closedir(self.stream) };
    }
}
