use super::check;
use super::fd::c_path;

pub const NO_SUID_DEV_EXEC: u64 = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;

pub fn mount(
    source: &[u8],
    target: &[u8],
    kind: &str,
    flags: u64,
    options: &[u8],
) -> Result<(), i32> {
    let (source, target) = (c_path(source)?, c_path(target)?);
    let (kind, options) = (c_path(kind.as_bytes())?, c_path(options)?);
    check(unsafe {
        libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, options.as_ptr().cast())
    })
    .map(|_| ())
}

pub fn share(path: &[u8]) -> Result<(), i32> {
    mount(b"", path, "", libc::MS_REC | libc::MS_SHARED, b"")
}

/// Mounts of the parent's namespace still arrive, none goes back.
pub fn enslave(path: &[u8]) -> Result<(), i32> {
    mount(b"", path, "", libc::MS_REC | libc::MS_SLAVE, b"")
}

pub fn bind(source: &[u8], target: &[u8]) -> Result<(), i32> {
    mount(source, target, "", libc::MS_BIND, b"")
}

pub fn move_to(source: &[u8], target: &[u8]) -> Result<(), i32> {
    mount(source, target, "", libc::MS_MOVE, b"")
}

pub fn make_read_only(path: &[u8], flags: u64) -> Result<(), i32> {
    mount(b"", path, "", libc::MS_REMOUNT | libc::MS_BIND | libc::MS_RDONLY | flags, b"")
}

pub fn make_writable(path: &[u8], flags: u64) -> Result<(), i32> {
    mount(b"", path, "", libc::MS_REMOUNT | libc::MS_BIND | flags, b"")
}

/// Makes `path` the root of the namespace and lets go of the old one.
pub fn pivot(path: &[u8]) -> Result<(), i32> {
    change_directory(path)?;
    let here = c".".as_ptr();
    check(unsafe { libc::syscall(libc::SYS_pivot_root, here, here) })?;
    check(unsafe { libc::umount2(here, libc::MNT_DETACH) })?;
    change_directory(b"/")
}

pub fn detach(path: &[u8]) -> Result<(), i32> {
    let path = c_path(path)?;
    check(unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) }).map(|_| ())
}

pub fn change_root(path: &[u8]) -> Result<(), i32> {
    let path = c_path(path)?;
    check(unsafe { libc::chroot(path.as_ptr()) })?;
    change_directory(b"/")
}

pub fn change_directory(path: &[u8]) -> Result<(), i32> {
    let path = c_path(path)?;
    check(unsafe { libc::chdir(path.as_ptr()) }).map(|_| ())
}
