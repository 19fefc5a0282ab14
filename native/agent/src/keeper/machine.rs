//! What a world is told of its machine: the memory and the processors that were asked for. The machine's own belong to others
//! too. Files that programs read for it are covered when a world is prepared, and written when it opens.
//!
//! `sysinfo(2)` can't be covered: it tells the memory of the host.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::failure::{Failure, Outcome};
use crate::pack::Fields;
use crate::sys::fd::{Fd, open, read_file, write_all_blocking};
use crate::sys::mount;
use crate::worlds::paths::STAGE;

/// Of a text that the kernel makes up for all processors of a machine.
const TEXT_BYTES_MAX: usize = 1 << 20;

pub struct Machine {
    memory: Fd,
    processors: Cut,
    times: Cut,
    online: Fd,
}

/// A file in place of the kernel's, and what that said.
struct Cut {
    file: Fd,
    whole: Vec<u8>,
}

impl Machine {
    /// Covers the files in what is staged for the world's root.
    pub fn prepare() -> Outcome<Machine> {
        let processors = "devices/system/cpu";
        Ok(Machine {
            memory: cover("meminfo", &["proc/meminfo"])?,
            processors: Cut::prepare("cpuinfo")?,
            times: Cut::prepare("stat")?,
            online: cover(
                "online",
                &["online", "possible", "present"].map(|name| format!("sys/{processors}/{name}")),
            )?,
        })
    }

    /// Says what the request for the world says; nothing reads the files yet.
    pub fn show(&self, fields: &Fields<'_>) -> Outcome<()> {
        self.show_memory(fields)?;
        let all = self.processors.whole.windows(2).filter(|pair| pair == b"\n\n").count().max(1);
        let most = fields.optional_number("cpus")?.unwrap_or(u64::MAX);
        let count = most.min(all as u64) as usize;
        self.processors.show(first_blocks(&self.processors.whole, count));
        self.times.show(&without_processors(&self.times.whole, count));
        let online = if count > 1 { format!("0-{}\n", count - 1) } else { "0\n".into() };
        write_all_blocking(self.online.raw(), online.as_bytes());
        Ok(())
    }

    fn show_memory(&self, fields: &Fields<'_>) -> Outcome<()> {
        let Some(total_bytes) = fields.optional_number("memoryTotalBytes")? else {
            return mount::detach(format!("{STAGE}/proc/meminfo").as_bytes())
                .map_err(|errno| Failure::system(errno, "meminfo"));
        };
        let total = total_bytes / 1024;
        let mut text = String::new();
        let zeros = [
            "Buffers",
            "Cached",
            "SwapCached",
            "Active",
            "Inactive",
            "SwapTotal",
            "SwapFree",
            "Shmem",
        ];
        let totals = ["MemTotal", "MemFree", "MemAvailable"].map(|name| (name, total));
        for (name, value) in totals.into_iter().chain(zeros.map(|name| (name, 0))) {
            text += &format!("{:<16}{:>8} kB\n", format!("{name}:"), value);
        }
        write_all_blocking(self.memory.raw(), text.as_bytes());
        Ok(())
    }
}

impl Cut {
    fn prepare(name: &str) -> Outcome<Cut> {
        let place = format!("proc/{name}");
        let whole = read_file(format!("{STAGE}/{place}").as_bytes(), TEXT_BYTES_MAX);
        Ok(Cut { whole: whole.unwrap_or_default(), file: cover(name, &[place])? })
    }

    fn show(&self, text: &[u8]) {
        write_all_blocking(self.file.raw(), text);
    }
}

/// An empty file, bound over each place that there is.
fn cover(name: &str, places: &[impl AsRef<str>]) -> Outcome<Fd> {
    let source = format!("{STAGE}/{name}");
    let failed = |errno| Failure::system(errno, String::from(name));
    let flags = libc::O_CREAT | libc::O_WRONLY;
    let file = open(source.as_bytes(), flags, 0o444).map_err(failed)?;
    for place in places {
        let place = format!("{STAGE}/{}", place.as_ref());
        match mount::bind(source.as_bytes(), place.as_bytes()) {
            Ok(()) | Err(libc::ENOENT) => {}
            Err(errno) => return Err(failed(errno)),
        }
    }
    Ok(file)
}

/// Each processor is a block of lines with an empty one behind it.
fn first_blocks(text: &[u8], count: usize) -> &[u8] {
    let ends = text.windows(2).enumerate().filter(|(_, pair)| pair == b"\n\n");
    ends.map(|(at, _)| at + 2).nth(count.saturating_sub(1)).map_or(text, |end| &text[..end])
}

/// Without the lines `cpu<n>` of those that aren't there.
fn without_processors(text: &[u8], count: usize) -> Vec<u8> {
    let beyond = |line: &[u8]| {
        let digits = line.strip_prefix(b"cpu")?.split(|byte| *byte == b' ').next()?;
        core::str::from_utf8(digits).ok()?.parse().ok().map(|number: usize| number >= count)
    };
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    lines.filter(|line| !beyond(line).unwrap_or(false)).flatten().copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_that_are_there() {
        let text = b"processor: 0\nmodel: x\n\nprocessor: 1\nmodel: x\n\n";
        assert_eq!(first_blocks(text, 1), b"processor: 0\nmodel: x\n\n");
        assert_eq!(first_blocks(text, 2), text);
        assert_eq!(first_blocks(text, 9), text);
    }

    #[test]
    fn their_times() {
        let text = b"cpu  3 0\ncpu0 1 0\ncpu1 2 0\nintr 0\n";
        assert_eq!(without_processors(text, 1), b"cpu  3 0\ncpu0 1 0\nintr 0\n");
        assert_eq!(without_processors(text, 2), text);
    }
}
