use alloc::format;
use alloc::vec::Vec;

use super::link::KeeperLink;
use super::users::Users;
use super::{Awaited, Ender, Init, State, Waiting, World, parse_name, paths};
use crate::agent::Agent;
use crate::clock::now_us;
use crate::failure::{Code, Failure, Outcome};
use crate::keeper;
use crate::limits::{PIDS_MAX_DEFAULT, WORLDS_MAX};
use crate::pack::{self, Fields};
use crate::streams::Stream;
use crate::sys::fd::{Fd, c_path, open};
use crate::sys::poller::Watched;
use crate::sys::{changes, check, process, socket};
use crate::token::Token;

impl Agent {
    /// Answered when the world could be opened without a wait, also for one that is prepared already.
    pub fn request_prepare(&mut self, id: u32, fields: &Fields<'_>) -> Outcome<()> {
        let name = parse_name(fields.bytes("world")?)?;
        let started_us = now_us();
        let world = match self.find_world(name.as_bytes()) {
            Ok(world) => world,
            Err(_) => self.prepare_world(&name)?,
        };
        if !self.worlds[world].is_unused() {
            return Err(Failure::new(Code::Exists, format!("world {name} was opened before")));
        }
        let what = Awaited::Prepared;
        self.streams.add(id, Stream::World(Waiting { world, what, started_us, deadline_ms: None }));
        if let Init::Alive(_) = self.worlds[world].init {
            self.answer_waiting(world, what);
        }
        // What most worlds have, so that it needn't be said when this one opens.
        let _ = self.limit_processes(world, PIDS_MAX_DEFAULT);
        keep_a_place_warm();
        Ok(())
    }

    /// Forks the keeper, which does the rest by itself. What is asked of the world meanwhile waits
    /// in its socket.
    pub fn prepare_world(&mut self, name: &str) -> Outcome<usize> {
        if self.find_world(name.as_bytes()).is_ok() {
            return Err(Failure::new(Code::Exists, format!("world {name} exists")));
        }
        if self.worlds.len() >= WORLDS_MAX {
            return Err(Failure::new(Code::Limit, "too many worlds"));
        }
        let index = self.worlds.len() as u32;
        let cgroup = paths::cgroup(name);
        let failed = |errno| Failure::system(errno, format!("cgroup of world {name}"));
        make_directory(&cgroup).map_err(failed)?;
        let file = |file: &str| open(format!("{cgroup}/{file}").as_bytes(), libc::O_RDONLY, 0);
        let population = file("cgroup.events").map_err(failed)?;
        let refusals = file("pids.events").map_err(failed)?;
        let refusals_watch =
            changes::watch(&self.changes.fd, format!("{cgroup}/pids.events").as_bytes())
                .map_err(failed)?;
        let (socket, keeper_pid) = self.fork_keeper()?;
        let socket = Watched::new(socket, Token::Keeper(index).pack());
        self.worlds.push(World {
            name: name.into(),
            state: State::Prepared,
            keeper: Some(KeeperLink::new(socket, &self.poller)),
            keeper_pid,
            init: Init::Awaited,
            opening: None,
            ending: None,
            lowers: alloc::vec::Vec::new(),
            finished: false,
            ending_ms: 0,
            look_at_ms: None,
            population,
            refusals,
            refusals_watch,
            pids_max: None,
            told_pids: false,
            users: Users::default(),
            told_disk: false,
            told_output: false,
            told_file_size: false,
            file_bytes_max: None,
        });
        Ok(index as usize)
    }

    fn fork_keeper(&mut self) -> Outcome<(Fd, i32)> {
        let failed = |errno| Failure::system(errno, "start of a keeper");
        let (ours, theirs) = socket::pair().map_err(failed)?;
        let pid = process::fork().map_err(failed)?;
        if pid == 0 {
            // The output of other worlds is none of this one's keeper.
            self.execs.forget_all();
            keeper::main(theirs);
        }
        Ok((ours, pid))
    }

    pub fn on_prepared(&mut self, world: usize, init: i32) {
        self.worlds[world].init = Init::Alive(init);
        self.answer_waiting(world, Awaited::Prepared);
        if self.worlds[world].ending.is_some() {
            self.kill_world(world);
        }
    }

    /// The keeper could not make the world, or died: there will be none of this name.
    pub fn on_world_failed(&mut self, world: usize, body: &[u8]) {
        for (id, what) in self.waiting_for(world) {
            if what != Awaited::Ended {
                self.fail_packed(id, body);
            }
        }
        self.begin_end(world, Ender::Episode);
    }
}

/// The runtime gives what held an ended process to the next one: the first command needn't wait until it is made.
fn keep_a_place_warm() {
    if let Ok(0) = process::fork() {
        process::exit(0);
    }
}

fn make_directory(path: &str) -> Result<(), i32> {
    let path = c_path(path.as_bytes())?;
    check(unsafe { libc::mkdir(path.as_ptr(), 0o755) }).map(|_| ())
}

impl Agent {
    /// Streams that wait for a world, and for what.
    pub(super) fn waiting_for(&self, world: usize) -> Vec<(u32, Awaited)> {
        let of_world = |(id, stream): (u32, &Stream)| match stream {
            Stream::World(waiting) if waiting.world == world => Some((id, waiting.what)),
            _ => None,
        };
        self.streams.iter().filter_map(of_world).collect()
    }

    pub(super) fn answer_waiting(&mut self, world: usize, what: Awaited) {
        for (id, _) in self.waiting_for(world).into_iter().filter(|(_, awaited)| *awaited == what) {
            if let Some(Stream::World(waiting)) = self.streams.get(id) {
                let mut body = pack::map().number("elapsedUs", now_us() - waiting.started_us);
                if what == Awaited::Ended {
                    let by = self.worlds[world].ending.unwrap_or(Ender::Request);
                    body = body.text("by", by.as_str());
                }
                self.succeed(id, body);
            }
        }
    }
}
