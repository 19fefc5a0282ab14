//! `/sys/devices/system/cpu` of a world: a directory for each processor that it may use, and none more. Whoever counts them, as the
//! C library does, would else find those of the host.

use alloc::format;
use alloc::string::String;

use super::prepare::{directory, tmpfs};
use crate::failure::{Failure, Outcome};
use crate::sys::fd::{c_path, open, write_all_blocking};
use crate::sys::mount::{self, NO_SUID_DEV_EXEC};
use crate::sys::{check, stat::Stat};
use crate::worlds::paths::STAGE;

/// The most that a world is shown.
const SHOWN_MAX: usize = 1024;

fn place() -> String {
    format!("{STAGE}/sys/devices/system/cpu")
}

/// An empty directory over that of the runtime, where it has one.
pub fn prepare() -> Outcome<()> {
    let place = place();
    match Stat::at(libc::AT_FDCWD, place.as_bytes(), 0) {
        Ok(_) => tmpfs(&place, "size=8m,nr_inodes=8192,mode=755", NO_SUID_DEV_EXEC),
        Err(_) => Ok(()),
    }
}

/// The first `count`, as cores of one processor.
pub fn show(count: usize) -> Outcome<()> {
    let place = place();
    if Stat::at(libc::AT_FDCWD, place.as_bytes(), 0).is_err() {
        return Ok(());
    }
    let count = count.min(SHOWN_MAX);
    let online = format!("{place}/online");
    file(&online, &if count > 1 { format!("0-{}\n", count - 1) } else { "0\n".into() })?;
    for name in ["possible", "present"] {
        link(&online, &format!("{place}/{name}"))?;
    }
    let mut siblings = String::new();
    for cpu in 0..count {
        let of_cpu = format!("{place}/cpu{cpu}");
        let topology = format!("{of_cpu}/topology");
        directory(&of_cpu, 0o755)?;
        directory(&topology, 0o755)?;
        let own = format!("{topology}/core_cpus");
        file(&own, &mask(count, |each| each == cpu))?;
        link(&own, &format!("{topology}/thread_siblings"))?;
        if siblings.is_empty() {
            siblings = format!("{topology}/core_siblings");
            file(&siblings, &mask(count, |_| true))?;
        } else {
            link(&siblings, &format!("{topology}/core_siblings"))?;
        }
        link(&siblings, &format!("{topology}/package_cpus"))?;
    }
    mount::make_read_only(place.as_bytes(), NO_SUID_DEV_EXEC)
        .map_err(|errno| Failure::system(errno, place))
}

fn file(path: &str, text: &str) -> Outcome<()> {
    let file = open(path.as_bytes(), libc::O_CREAT | libc::O_WRONLY, 0o444)
        .map_err(|errno| Failure::system(errno, String::from(path)))?;
    write_all_blocking(file.raw(), text.as_bytes());
    Ok(())
}

fn link(from: &str, to: &str) -> Outcome<()> {
    let failed = |errno| Failure::system(errno, String::from(to));
    let paths = c_path(from.as_bytes()).and_then(|from| Ok((from, c_path(to.as_bytes())?)));
    let (from, to) = paths.map_err(failed)?;
    check(unsafe { libc::link(from.as_ptr(), to.as_ptr()) }).map(|_| ()).map_err(failed)
}

/// As the kernel writes a set of processors: hexadecimal, 32 in a group, the highest first.
fn mask(count: usize, has: impl Fn(usize) -> bool) -> String {
    let mut text = String::new();
    for group in (0..count.div_ceil(32)).rev() {
        let bits = (0..32).filter(|bit| group * 32 + bit < count && has(group * 32 + bit));
        let word = bits.fold(0u32, |word, bit| word | 1 << bit);
        let digits = (count - group * 32).min(32).div_ceil(4);
        text += &format!("{word:0digits$x}");
        text.push(if group == 0 { '\n' } else { ',' });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::mask;

    #[test]
    fn masks() {
        assert_eq!(mask(1, |_| true), "1\n");
        assert_eq!(mask(2, |_| true), "3\n");
        assert_eq!(mask(8, |cpu| cpu == 1), "02\n");
        assert_eq!(mask(33, |cpu| cpu == 32), "1,00000000\n");
        assert_eq!(mask(64, |_| true), "ffffffff,ffffffff\n");
    }
}
