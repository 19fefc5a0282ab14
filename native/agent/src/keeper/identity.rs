//! What tells one sandbox from its copies, where the processes of a world look for it: the host name, `/etc/machine-id`,
//! and a seed that no other sandbox has. The files are bound over the image's, so that they are no change of the world's own.

use crate::failure::{Failure, Outcome};
use crate::pack::Fields;
use crate::sys::capabilities::{self, OF_KEEPER, SYS_ADMIN};
use crate::sys::fd::{open, write_all_blocking};
use crate::sys::process;
use crate::sys::stat::{Kind, Stat};

/// In the `/dev` of each world; empty unless the sandbox may be copied.
pub const SEED: &str = "sandlot-seed";

/// In the world's root, where the files were bound when it was opened.
pub fn renew(fields: &Fields<'_>) -> Outcome<()> {
    let failed = |errno| Failure::system(errno, "hostname");
    capabilities::set(OF_KEEPER | SYS_ADMIN, OF_KEEPER | SYS_ADMIN).map_err(failed)?;
    let named = process::set_host_name(fields.bytes("hostname")?);
    let _ = capabilities::set(OF_KEEPER | SYS_ADMIN, OF_KEEPER);
    named.map_err(failed)?;
    for (key, path) in [("machineId", "/etc/machine-id"), ("seed", "/dev/sandlot-seed")] {
        if let Some(content) = fields.optional_bytes(key)? {
            rewrite(path, content)
                .map_err(|errno| Failure::system(errno, "identity of the world"))?;
        }
    }
    Ok(())
}

/// Where the image left no place for it there is none.
fn rewrite(path: &str, content: &[u8]) -> Result<(), i32> {
    let flags = libc::O_WRONLY | libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = match open(path.as_bytes(), flags, 0) {
        Err(libc::ENOENT | libc::ELOOP) => return Ok(()),
        file => file?,
    };
    if Stat::of(file.raw())?.kind() != Kind::File {
        return Ok(());
    }
    crate::sys::check(unsafe { libc::ftruncate(file.raw(), 0) })?;
    write_all_blocking(file.raw(), content);
    Ok(())
}
