//! Commands. An exec has an id that the daemon chose, lives in the agent and doesn't need a reader.
//!
//! ```
//! starting ── the keeper started it ──▶ running ── the command ended ──▶ draining
//!     └── it could not ──▶ gone                                             │
//!                     ended ◀── what its pipes held at that moment is read ─┘
//! ```
//! - **running**: a reader that is attached in mode `stream` and doesn't read holds the command up.
//! - **draining**: as running, but only the bytes that were there when it ended are read.
//!
//! One that runs at a terminal has it as stdin and stdout, and no stderr. What it left then runs on: gVisor sends it no SIGHUP, and
//! nobody reads the terminal any more.
//!
//! - **ended**: result and output are kept for readers until they are forgotten. What the command left
//!   behind may still hold its pipes: these bytes are thrown away, slowly, so that nothing of it hangs.

mod attach;
mod command;
mod end;
mod kept;
mod kill;
mod listing;
mod met;
mod output;
mod start;
mod stdin;
mod terminal;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

use sandlot_frames::{ReceiveWindow, SendWindow};

use crate::failure::{Code, Failure, Outcome};
use crate::sink::Sink;
use crate::sys::check;
use crate::sys::fd::{c_path, read_file};
use crate::sys::poller::Watched;
use command::Shown;
pub use end::Exit;
use kept::{Budget, Kept};
use met::Met;

pub struct Exec {
    pub serial: u32,
    pub name: String,
    pub world: usize,
    state: State,
    mode: Mode,
    terminal: bool,
    /// As far as it is shown.
    command: Shown,
    /// As the world sees it.
    pid: u64,
    /// `/cg/<world>/<exec>`
    cgroup: String,
    leaf_removed: bool,
    started_wall_ms: u64,
    started_us: u64,
    ended_us: u64,
    deadline_ms: Option<u64>,
    /// While it starts: when it is looked at.
    start_look_at_ms: Option<u64>,
    timed_out: bool,
    killed: bool,
    exit: Exit,
    /// Processes it started that ran on when it ended.
    left: u64,
    /// How often its world had been refused a process when it began.
    refused_before: u64,
    /// By whom it was started, where users are counted, and how often they had been refused one.
    user: Option<usize>,
    user_refused_before: u64,
    met: Met,
    /// A reader has had the result.
    delivered: bool,
    /// It is forgotten then.
    forget: bool,
    stdin: Option<Sink>,
    /// stdout, stderr
    outputs: [Output; 2],
    /// The stream that reads it.
    reader: Option<u32>,
    /// When the pipes that outlived it are looked at again.
    leftovers_at_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Starting,
    Running,
    Draining,
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Stream,
    Buffered,
}

struct Output {
    /// `None` at end of file.
    pipe: Option<Watched>,
    kept: Kept,
    /// Once it has ended: bytes in the pipe that are still its own.
    unread: Option<usize>,
}

/// The state of a stream that reads an exec.
pub struct Reader {
    pub serial: u32,
    pub windows: [SendWindow; 2],
    /// Offsets of the next byte to send.
    positions: [u64; 2],
    ended: [bool; 2],
    stdin: ReceiveWindow,
}

impl Reader {
    fn new(serial: u32, positions: [u64; 2]) -> Reader {
        let (windows, ended) = (Default::default(), [false; 2]);
        Reader { serial, windows, positions, ended, stdin: ReceiveWindow::default() }
    }
}

impl Exec {
    pub fn running(&self) -> bool {
        self.state != State::Ended
    }

    /// How many processes are in its cgroup.
    fn processes(&self) -> u64 {
        let procs = read_file(format!("{}/cgroup.procs", self.cgroup).as_bytes(), 1 << 16);
        procs.unwrap_or_default().iter().filter(|byte| **byte == b'\n').count() as u64
    }

    /// Only an empty one goes; true where none is left.
    pub fn remove_leaf(&mut self) -> bool {
        if let (false, Ok(path)) = (self.leaf_removed, c_path(self.cgroup.as_bytes())) {
            let removed = check(unsafe { libc::rmdir(path.as_ptr()) });
            self.leaf_removed = matches!(removed, Ok(_) | Err(libc::ENOENT));
        }
        self.leaf_removed
    }
}

/// All execs, oldest first.
#[derive(Default)]
pub struct Execs {
    all: BTreeMap<u32, Exec>,
    budget: Budget,
}

impl Execs {
    fn get(&mut self, serial: u32) -> Option<&mut Exec> {
        self.all.get_mut(&serial)
    }

    fn find(&self, name: &[u8]) -> Outcome<u32> {
        let named = |exec: &&Exec| exec.name.as_bytes() == name;
        self.all
            .values()
            .find(named)
            .map(|exec| exec.serial)
            .ok_or_else(|| Failure::new(Code::ExecUnknown, "no such exec"))
    }

    pub fn name(&self, serial: u32) -> Option<String> {
        self.all.get(&serial).map(|exec| exec.name.clone())
    }

    pub fn starting(&self, serial: u32) -> bool {
        self.all.get(&serial).is_some_and(|exec| exec.state == State::Starting)
    }

    pub fn of_world(&self, world: usize) -> impl Iterator<Item = &Exec> {
        self.all.values().filter(move |exec| exec.world == world)
    }

    pub fn remove_leaves_of(&mut self, world: usize) {
        for exec in self.all.values_mut().filter(|exec| exec.world == world) {
            exec.remove_leaf();
        }
    }

    pub fn held_bytes(&self) -> usize {
        self.budget.used()
    }

    fn remove(&mut self, serial: u32) -> Option<Exec> {
        let mut exec = self.all.remove(&serial)?;
        for output in &mut exec.outputs {
            output.kept.release(&mut self.budget);
        }
        Some(exec)
    }

    /// In a forked child, which has no part in them.
    pub fn forget_all(&mut self) {
        self.all.clear();
    }

    /// Time in which the sandbox stood still counts for no command.
    pub fn make_up_for(&mut self, lost_ms: u64) {
        for exec in self.all.values_mut() {
            let times =
                [&mut exec.deadline_ms, &mut exec.start_look_at_ms, &mut exec.leftovers_at_ms];
            for at in times.into_iter().flatten() {
                *at = at.saturating_add(lost_ms);
            }
            if matches!(exec.state, State::Starting | State::Running) {
                exec.started_us = exec.started_us.saturating_add(lost_ms.saturating_mul(1000));
            }
        }
    }

    pub fn next_ms(&self) -> Option<u64> {
        let times = |exec: &Exec| [exec.deadline_ms, exec.start_look_at_ms, exec.leftovers_at_ms];
        self.all.values().flat_map(times).flatten().min()
    }
}
