//! Thin, checked coverings of system calls; nothing here decides anything.

pub mod attributes;
pub mod capabilities;
pub mod changes;
pub mod directory;
pub mod fd;
pub mod mount;
pub mod network;
pub mod overlay;
pub mod poller;
pub mod process;
pub mod socket;
pub mod stat;
pub mod terminal;

/// The errno of the call that just failed.
pub fn errno() -> i32 {
    unsafe { *libc::__errno_location() }
}

/// Turns the result of a system call into its value or its errno.
pub fn check(result: impl Into<i64>) -> Result<i64, i32> {
    let result = result.into();
    if result < 0 { Err(errno()) } else { Ok(result) }
}
