use core::mem::MaybeUninit;

use super::check;
use super::fd::{Fd, open};

// As the kernel counts them; not every C library names them all.
const TIOCSPTLCK: i32 = 0x4004_5431;
const TIOCGPTPEER: i32 = 0x5441;

/// In characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub columns: u16,
    pub rows: u16,
}

/// A new terminal of the file system at `place`: the end that types and reads the screen, and the end that a command gets.
/// The second is taken from the first and not looked up by its name, which others may have covered.
pub fn open_pair(place: &[u8]) -> Result<(Fd, Fd), i32> {
    let flags = libc::O_RDWR | libc::O_NOCTTY;
    let screen = open(place, flags, 0)?;
    let unlocked = 0i32;
    check(unsafe { libc::ioctl(screen.raw(), TIOCSPTLCK as _, &unlocked) })?;
    let line = unsafe { libc::ioctl(screen.raw(), TIOCGPTPEER as _, flags | libc::O_CLOEXEC) };
    Ok((screen, Fd::own(check(line)? as i32)))
}

/// Tells what runs in the foreground, where it is a change.
pub fn set_size(terminal: &Fd, size: Size) -> Result<(), i32> {
    let size =
        libc::winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
    check(unsafe { libc::ioctl(terminal.raw(), libc::TIOCSWINSZ as _, &size) }).map(|_| ())
}

/// What is deleted is a character, however many bytes it has.
pub fn expect_utf8(terminal: &Fd) {
    unsafe {
        let mut modes = MaybeUninit::<libc::termios>::zeroed();
        if libc::ioctl(terminal.raw(), libc::TCGETS as _, modes.as_mut_ptr()) == 0 {
            (*modes.as_mut_ptr()).c_iflag |= libc::IUTF8;
            libc::ioctl(terminal.raw(), libc::TCSETS as _, modes.as_ptr());
        }
    }
}

/// Of a session that has none: this is what ^C comes from. Safe between birth and exec.
pub fn be_controlled_by(terminal: i32) -> Result<(), i32> {
    check(unsafe { libc::ioctl(terminal, libc::TIOCSCTTY as _, 0) }).map(|_| ())
}
