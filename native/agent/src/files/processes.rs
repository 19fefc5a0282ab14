use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::failed;
use crate::failure::Outcome;
use crate::limits::{COMMAND_SHOWN_BYTES, PROCESSES_LISTED_MAX};
use crate::pack::{self, Map};
use crate::sys::directory::Entries;
use crate::sys::fd::read_file;

/// The list is one frame.
const LISTED_BYTES_MAX: usize = 60_000;

struct Process {
    pid: u64,
    parent: u64,
    exec: Option<String>,
    command: Vec<u8>,
}

/// Read from the world's own /proc: it shows the world's processes and their numbers there.
pub fn list() -> Outcome<Map> {
    let entries = Entries::open(b"/proc").map_err(|errno| failed(errno, b"/proc"))?;
    let processes: Vec<Process> = entries
        .filter_map(|name| core::str::from_utf8(&name).ok()?.parse().ok())
        // The world's init is ours.
        .filter(|pid| *pid != 1)
        .filter_map(look)
        .take(PROCESSES_LISTED_MAX)
        .scan(LISTED_BYTES_MAX, |left, process| {
            *left = left.checked_sub(process.packed_bytes())?;
            Some(process)
        })
        .collect();
    Ok(pack::map().array("processes", processes.len(), |out| {
        for process in &processes {
            let mut map = pack::map().number("pid", process.pid).number("parent", process.parent);
            if let Some(exec) = &process.exec {
                map = map.text("exec", exec);
            }
            out.extend(map.bytes("command", &process.command).finish());
        }
    }))
}

impl Process {
    /// At most.
    fn packed_bytes(&self) -> usize {
        let exec = self.exec.as_ref().map_or(0, |exec| exec.len() + 7);
        self.command.len() + exec + 40
    }
}

fn look(pid: u64) -> Option<Process> {
    let stat = read_file(format!("/proc/{pid}/stat").as_bytes(), 4096).ok()?;
    // `pid (name) state parent …`, and the name may hold anything.
    let close = stat.iter().rposition(|byte| *byte == b')')?;
    let open = stat.iter().position(|byte| *byte == b'(')?;
    let rest = core::str::from_utf8(&stat[close + 1..]).ok()?;
    let parent = rest.split_ascii_whitespace().nth(1)?.parse().ok()?;
    let arguments = read_file(format!("/proc/{pid}/cmdline").as_bytes(), 4096).unwrap_or_default();
    let mut command: Vec<u8> =
        arguments.iter().map(|byte| if *byte == 0 { b' ' } else { *byte }).collect();
    if command.is_empty() {
        command = stat.get(open..=close)?.to_vec();
    }
    command.truncate(COMMAND_SHOWN_BYTES);
    while command.last() == Some(&b' ') {
        command.pop();
    }
    Some(Process { pid, parent, exec: exec_of(pid), command })
}

/// The last part of its cgroup's path: `0::/main/<exec>`.
fn exec_of(pid: u64) -> Option<String> {
    let groups = read_file(format!("/proc/{pid}/cgroup").as_bytes(), 4096).ok()?;
    let line = groups.split(|byte| *byte == b'\n').find(|line| line.starts_with(b"0::"))?;
    let name = line.rsplit(|byte| *byte == b'/').next().filter(|name| !name.is_empty())?;
    String::from_utf8(name.to_vec()).ok()
}
