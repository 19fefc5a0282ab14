//! The terminal of a command, from the world's own file system of terminals.

use crate::failure::{Failure, Outcome};
use crate::limits::TERMINAL_CELLS_MAX;
use crate::pack::Fields;
use crate::sys::fd::Fd;
use crate::sys::terminal::{self, Size};

use super::account::Account;

/// Nothing of the world can cover it: its `/dev` is read-only, and it can't mount.
const PLACE: &[u8] = b"/dev/pts/ptmx";

pub struct Terminal {
    /// For the agent: what is typed goes in, what is printed comes out.
    pub screen: Fd,
    /// Becomes 0, 1 and 2 of the command.
    pub line: Fd,
}

pub fn open(size: Size, account: &Account) -> Outcome<Terminal> {
    let failed = |errno| Failure::system(errno, "a terminal for the command");
    let (screen, line) = terminal::open_pair(PLACE).map_err(failed)?;
    terminal::set_size(&screen, size).map_err(failed)?;
    terminal::expect_utf8(&line);
    // Who isn't root may open it by its name too; where the runtime can't say so, by what it inherits alone.
    unsafe { libc::fchown(line.raw(), account.uid, account.gid) };
    Ok(Terminal { screen, line })
}

/// Of a command that wants one.
pub fn size(fields: &Fields<'_>) -> Outcome<Option<Size>> {
    let cells = |key: &str| match fields.optional_number(key)? {
        None => Ok(None),
        Some(count @ 1..=TERMINAL_CELLS_MAX) => Ok(Some(count as u16)),
        Some(_) => Err(Failure::invalid("columns or rows of a terminal are not 1 to 4096")),
    };
    match (cells("columns")?, cells("rows")?) {
        (Some(columns), Some(rows)) => Ok(Some(Size { columns, rows })),
        (None, None) => Ok(None),
        _ => Err(Failure::invalid("a terminal has columns and rows")),
    }
}
