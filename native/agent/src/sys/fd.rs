use alloc::ffi::CString;
use alloc::vec::Vec;

use super::{check, errno};

/// An open descriptor, closed when dropped.
#[derive(Debug)]
pub struct Fd(i32);

impl Fd {
    /// Takes over a descriptor that nobody else closes.
    pub fn own(raw: i32) -> Fd {
        Fd(raw)
    }

    pub fn raw(&self) -> i32 {
        self.0
    }

    pub fn read(&self, into: &mut [u8]) -> Result<usize, i32> {
        read(self.0, into)
    }

    pub fn write(&self, bytes: &[u8]) -> Result<usize, i32> {
        write(self.0, bytes)
    }

    /// Another descriptor of the same open file.
    pub fn duplicate(&self) -> Result<Fd, i32> {
        let fd = unsafe { libc::fcntl(self.0, libc::F_DUPFD_CLOEXEC, 0) };
        check(fd).map(|fd| Fd(fd as i32))
    }
}

impl Drop for Fd {
    fn drop(&mut self) {
        unsafe { libc::close(self.0) };
    }
}

pub fn read(fd: i32, into: &mut [u8]) -> Result<usize, i32> {
    loop {
        let count = unsafe { libc::read(fd, into.as_mut_ptr().cast(), into.len()) };
        if count >= 0 {
            return Ok(count as usize);
        }
        if errno() != libc::EINTR {
            return Err(errno());
        }
    }
}

pub fn write(fd: i32, bytes: &[u8]) -> Result<usize, i32> {
    loop {
        let count = unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
        if count >= 0 {
            return Ok(count as usize);
        }
        if errno() != libc::EINTR {
            return Err(errno());
        }
    }
}

/// For descriptors that block; says how far it got.
pub fn write_all_blocking(fd: i32, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        match write(fd, bytes) {
            Ok(count) if count > 0 => bytes = &bytes[count..],
            _ => return false,
        }
    }
    true
}

pub fn open(path: &[u8], flags: i32, mode: u32) -> Result<Fd, i32> {
    open_at(libc::AT_FDCWD, path, flags, mode)
}

pub fn open_at(directory: i32, path: &[u8], flags: i32, mode: u32) -> Result<Fd, i32> {
    let path = c_path(path)?;
    loop {
        let fd = unsafe { libc::openat(directory, path.as_ptr(), flags | libc::O_CLOEXEC, mode) };
        if fd >= 0 {
            return Ok(Fd(fd));
        }
        if errno() != libc::EINTR {
            return Err(errno());
        }
    }
}

/// A directory, and not what a link of that name points to. (With O_DIRECTORY the runtime follows
/// links in spite of O_NOFOLLOW.)
pub fn open_directory_at(directory: i32, name: &[u8]) -> Result<Fd, i32> {
    let flags = libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let fd = open_at(directory, name, flags, 0)?;
    let mut stat: libc::stat = unsafe { core::mem::zeroed() };
    check(unsafe { libc::fstat(fd.0, &mut stat) })?;
    if stat.st_mode & libc::S_IFMT == libc::S_IFDIR { Ok(fd) } else { Err(libc::ENOTDIR) }
}

/// A path as the kernel takes it; a NUL byte inside can't exist on any file system.
pub fn c_path(path: &[u8]) -> Result<CString, i32> {
    CString::new(path).map_err(|_| libc::EINVAL)
}

/// Read end, write end.
pub fn pipe(flags: i32) -> Result<(Fd, Fd), i32> {
    let mut ends = [0; 2];
    check(unsafe { libc::pipe2(ends.as_mut_ptr(), flags | libc::O_CLOEXEC) })?;
    Ok((Fd(ends[0]), Fd(ends[1])))
}

/// A descriptor of a new pipe, which has no other flags to keep.
pub fn never_wait(end: &Fd) {
    unsafe { libc::fcntl(end.0, libc::F_SETFL, libc::O_NONBLOCK) };
}

pub fn set_nonblocking(fd: i32, on: bool) {
    unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        let flags = if on { flags | libc::O_NONBLOCK } else { flags & !libc::O_NONBLOCK };
        libc::fcntl(fd, libc::F_SETFL, flags);
    }
}

/// Where the kernel refuses, it stays as it was.
pub fn widen_pipe(end: &Fd, bytes: i32) {
    unsafe { libc::fcntl(end.0, libc::F_SETPIPE_SZ, bytes) };
}

/// From where the next read begins.
pub fn seek(file: &Fd, offset: u64) -> Result<(), i32> {
    let offset = i64::try_from(offset).map_err(|_| libc::EINVAL)?;
    check(unsafe { libc::lseek(file.0, offset, libc::SEEK_SET) }).map(|_| ())
}

/// How many bytes a pipe holds now.
pub fn readable_bytes(fd: i32) -> usize {
    let mut count = 0i32;
    match unsafe { libc::ioctl(fd, libc::FIONREAD, &mut count) } {
        0 => count.max(0) as usize,
        _ => 0,
    }
}

/// A small file whole, up to `limit` bytes.
pub fn read_file(path: &[u8], limit: usize) -> Result<Vec<u8>, i32> {
    read_to_end(&open(path, libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY, 0)?, limit)
}

pub fn read_to_end(fd: &Fd, limit: usize) -> Result<Vec<u8>, i32> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    while bytes.len() < limit {
        let count = fd.read(&mut chunk)?;
        if count == 0 {
            break;
        }
        bytes.extend_from_slice(&chunk[..count]);
    }
    bytes.truncate(limit);
    Ok(bytes)
}

/// A small file that is kept open and changes.
pub fn read_from_start(fd: &Fd) -> Vec<u8> {
    let mut bytes = alloc::vec![0; 1024];
    let count = unsafe { libc::pread(fd.0, bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    bytes.truncate(count.max(0) as usize);
    bytes
}

pub fn write_file(path: &[u8], bytes: &[u8]) -> Result<(), i32> {
    let fd = open(path, libc::O_WRONLY, 0)?;
    match fd.write(bytes)? {
        count if count == bytes.len() => Ok(()),
        _ => Err(libc::EIO),
    }
}

/// Closes every descriptor from `first` on that is not in `kept` (ascending).
pub fn close_all_except(first: i32, kept: &[i32]) {
    let mut from = first as u32;
    for fd in kept.iter().map(|fd| *fd as u32).filter(|fd| *fd >= first as u32) {
        if fd > from {
            unsafe { libc::syscall(libc::SYS_close_range, from, fd - 1, 0) };
        }
        from = fd + 1;
    }
    unsafe { libc::syscall(libc::SYS_close_range, from, u32::MAX, 0) };
}
