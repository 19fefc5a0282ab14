//! What a world is told of its machine: the memory and the processors that were asked for. The machine's own belong to others
//! too. Files that programs read for it are covered when a world is prepared, and written when it opens.
//!
//! `sysinfo(2)` can't be covered: the runtime answers it with the memory of the host.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::topology;
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
}

/// A file in place of the kernel's, and what that said.
struct Cut {
    file: Fd,
    whole: Vec<u8>,
}

impl Machine {
    /// Covers the files in what is staged for the world's root.
    pub fn prepare() -> Outcome<Machine> {
        topology::prepare()?;
        Ok(Machine {
            memory: cover("meminfo")?,
            processors: Cut::prepare("cpuinfo")?,
            times: Cut::prepare("stat")?,
        })
    }

    /// Says what the request for the world says; nothing reads the files yet.
    pub fn show(&self, fields: &Fields<'_>) -> Outcome<()> {
        self.show_memory(fields)?;
        let all = self.processors.whole.windows(2).filter(|pair| pair == b"\n\n").count().max(1);
        let most = fields.optional_number("cpus")?.unwrap_or(u64::MAX);
        let count = most.min(all as u64) as usize;
        self.processors.show(&with_cores(first_blocks(&self.processors.whole, count), count));
        self.times.show(&without_processors(&self.times.whole, count));
        topology::show(count)
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
        Ok(Cut { whole: whole.unwrap_or_default(), file: cover(name)? })
    }

    fn show(&self, text: &[u8]) {
        write_all_blocking(self.file.raw(), text);
    }
}

/// An empty file, bound over the one of this name below /proc.
fn cover(name: &str) -> Outcome<Fd> {
    let source = format!("{STAGE}/{name}");
    let failed = |errno| Failure::system(errno, String::from(name));
    let flags = libc::O_CREAT | libc::O_WRONLY;
    let file = open(source.as_bytes(), flags, 0o444).map_err(failed)?;
    mount::bind(source.as_bytes(), format!("{STAGE}/proc/{name}").as_bytes()).map_err(failed)?;
    Ok(file)
}

/// Each processor is a block of lines with an empty one behind it.
fn first_blocks(text: &[u8], count: usize) -> &[u8] {
    let ends = text.windows(2).enumerate().filter(|(_, pair)| pair == b"\n\n");
    ends.map(|(at, _)| at + 2).nth(count.saturating_sub(1)).map_or(text, |end| &text[..end])
}

/// The runtime shows all processors as cores of one, and each says how many those are.
fn with_cores(text: &[u8], count: usize) -> Vec<u8> {
    let mut all = Vec::with_capacity(text.len());
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        match line.iter().position(|byte| *byte == b':') {
            Some(at) if line.starts_with(b"siblings") || line.starts_with(b"cpu cores") => {
                all.extend_from_slice(&line[..at]);
                all.extend_from_slice(format!(": {count}\n").as_bytes());
            }
            _ => all.extend_from_slice(line),
        }
    }
    all
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
    fn their_cores() {
        let text = b"processor\t: 0\nsiblings\t: 16\ncpu cores\t: 16\nflags\t: a\n\n";
        let shown = b"processor\t: 0\nsiblings\t: 2\ncpu cores\t: 2\nflags\t: a\n\n";
        assert_eq!(with_cores(text, 2), shown);
    }

    #[test]
    fn their_times() {
        let text = b"cpu  3 0\ncpu0 1 0\ncpu1 2 0\nintr 0\n";
        assert_eq!(without_processors(text, 1), b"cpu  3 0\ncpu0 1 0\nintr 0\n");
        assert_eq!(without_processors(text, 2), text);
    }
}
