//! Worlds as the agent knows them.
//!
//! ```
//! prepared ── world.open ──▶ open ── its init is dead and its cgroup is empty ──▶ ended
//!     └────────────────── world.end, or its init dies ──────────────────────────────▲
//! ```
//! - **prepared**: a keeper has made the namespaces and an init (or is at it); requests queue there.
//! - **open**: it has a root; commands and file requests are taken.
//! - **ended**: nothing of it runs for certain, and nothing writes its files. Its files stay until the sandbox ends.
//!
//! `ending` is how open and prepared are left: nothing new is taken, and it isn't ended yet.

mod below;
mod end;
mod link;
mod news;
mod open;
pub mod paths;
mod prepare;
mod stats;
mod users;

use alloc::string::String;
use alloc::vec::Vec;

use crate::agent::Agent;
use crate::failure::{Code, Failure, Outcome};
use crate::sys::fd::Fd;
use link::KeeperLink;
use users::Users;

pub struct World {
    pub name: String,
    pub state: State,
    keeper: Option<KeeperLink>,
    keeper_pid: i32,
    init: Init,
    /// The keeper's serial of the open under way.
    opening: Option<u32>,
    ending: Option<Ender>,
    /// What its overlay lies over, top first.
    lowers: Vec<Vec<u8>>,
    /// The keeper has seen the end of all that it started for the world.
    finished: bool,
    /// Since when, and when it is looked at again.
    ending_ms: u64,
    look_at_ms: Option<u64>,
    /// cgroup.events: whether anything runs in it.
    population: Fd,
    /// pids.events: whether a process was refused. Watched until it was told.
    refusals: Fd,
    refusals_watch: i32,
    /// How many processes it may have; none was said yet.
    pids_max: Option<u64>,
    told_pids: bool,
    pub users: Users,
    told_disk: bool,
    told_output: bool,
    told_file_size: bool,
    /// How large a file may become, where that is limited.
    pub file_bytes_max: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Prepared,
    Open,
    Ended,
}

impl State {
    pub fn as_str(self) -> &'static str {
        match self {
            State::Prepared => "prepared",
            State::Open => "open",
            State::Ended => "ended",
        }
    }
}

/// The world's PID 1; its number is the agent's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Init {
    /// The keeper is about to make it.
    Awaited,
    Alive(i32),
    Dead,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ender {
    Request,
    Episode,
}

impl Ender {
    fn as_str(self) -> &'static str {
        match self {
            Ender::Request => "request",
            Ender::Episode => "episode",
        }
    }
}

/// A stream that waits for a world.
pub struct Waiting {
    pub world: usize,
    pub what: Awaited,
    pub started_us: u64,
    pub deadline_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    Prepared,
    Opened,
    Ended,
}

impl World {
    /// Whether it can still be opened.
    fn is_unused(&self) -> bool {
        self.state == State::Prepared && self.ending.is_none() && self.opening.is_none()
    }

    /// Whether files are read: also when all of its processes are gone.
    pub fn has_files(&self) -> bool {
        self.is_open() || (self.state == State::Ended && self.keeper.is_some())
    }

    pub fn is_open(&self) -> bool {
        self.state == State::Open && self.ending.is_none()
    }

    /// Whether it is about to become what it isn't yet.
    pub fn in_transition(&self) -> bool {
        let opening = self.state == State::Prepared && self.opening.is_some();
        let ending = self.state != State::Ended && self.ending.is_some();
        opening || ending || self.init == Init::Awaited
    }

    /// Whether a failure is that of making the world: preparing has no serial of its own.
    fn is_failed_by(&self, serial: u32) -> bool {
        serial == 0 || (self.state == State::Prepared && self.opening == Some(serial))
    }

    pub fn queued_bytes(&self) -> usize {
        self.keeper.as_ref().map_or(0, KeeperLink::queued_bytes)
    }

    /// When an ending world is looked at again.
    pub fn look_at_ms(&self) -> Option<u64> {
        self.look_at_ms
    }

    pub fn cgroup(&self) -> String {
        paths::cgroup(&self.name)
    }

    pub fn upper(&self) -> String {
        paths::upper(&self.name)
    }
}

impl Agent {
    pub fn find_world(&self, name: &[u8]) -> Outcome<usize> {
        let named = |world: &World| world.name.as_bytes() == name;
        self.worlds
            .iter()
            .position(named)
            .ok_or_else(|| Failure::new(Code::WorldUnknown, "no such world"))
    }
}

fn parse_name(name: &[u8]) -> Outcome<String> {
    let valid = (1..=16).contains(&name.len()) && name.iter().all(u8::is_ascii_lowercase);
    match (valid, core::str::from_utf8(name)) {
        (true, Ok(name)) => Ok(name.into()),
        _ => Err(Failure::invalid("world is not a name of 1 to 16 small letters")),
    }
}
