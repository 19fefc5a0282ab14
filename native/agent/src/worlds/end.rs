use alloc::format;
use alloc::vec::Vec;

use super::{Awaited, Ender, Init, State, Waiting, World};
use crate::agent::Agent;
use crate::clock::{now_ms, now_us};
use crate::failure::{Code, Failure, Outcome};
use crate::keeper::message::{Tag, pack_failure};
use crate::limits::{ENDING_LOOK_MS, KEEPER_PATIENCE_MS};
use crate::pack::Fields;
use crate::streams::Stream;
use crate::sys::fd::{read_from_start, write_file};
use crate::sys::{changes, process};

impl Agent {
    pub fn request_end(&mut self, id: u32, fields: &Fields<'_>) -> Outcome<()> {
        let started_us = now_us();
        let world = self.find_world(fields.bytes("world")?)?;
        let deadline_ms = Some(now_ms().saturating_add(fields.number("timeoutMs")?));
        let what = Awaited::Ended;
        self.streams.add(id, Stream::World(Waiting { world, what, started_us, deadline_ms }));
        if self.worlds[world].state == State::Ended {
            self.answer_waiting(world, Awaited::Ended);
        } else {
            self.begin_end(world, Ender::Request);
        }
        Ok(())
    }

    /// Nothing new is taken, what writes its files is broken off, everything in it is killed. The
    /// first cause counts.
    pub fn begin_end(&mut self, world: usize, by: Ender) {
        if self.worlds[world].ending.is_none() {
            self.worlds[world].ending = Some(by);
            self.worlds[world].ending_ms = now_ms();
            self.say_to_keeper(world, Tag::Finish, 0, &[], &[], Vec::new());
            self.fail_writers_of(world);
            let events = format!("{}/cgroup.events", self.worlds[world].cgroup());
            let _ = changes::watch(&self.changes.fd, events.as_bytes());
        }
        self.kill_world(world);
    }

    /// Kills everything in a world, by its init and by its cgroup.
    pub fn kill_world(&mut self, world: usize) {
        if let Init::Alive(init) = self.worlds[world].init {
            let _ = process::kill(init, libc::SIGKILL);
        }
        let cgroup = self.worlds[world].cgroup();
        let _ = write_file(format!("{cgroup}/cgroup.kill").as_bytes(), b"1");
        self.worlds[world].look_at_ms = Some(now_ms() + ENDING_LOOK_MS);
        self.settle_end(world);
    }

    pub fn on_init_ended(&mut self, world: usize) {
        self.worlds[world].init = Init::Dead;
        if self.worlds[world].ending.is_none() {
            self.tell_world_ended(world);
        }
        self.begin_end(world, Ender::Episode);
    }

    pub fn on_finished(&mut self, world: usize) {
        self.worlds[world].finished = true;
        self.settle_end(world);
    }

    /// The keeper is gone, which it does not do by itself: the world has lost its head, and its files.
    pub fn on_keeper_gone(&mut self, world: usize) {
        if let Some(keeper) = self.worlds[world].keeper.take() {
            keeper.close(&self.poller);
        }
        self.lose_execs_of(world);
        let failure = Failure::new(Code::WorldNotOpen, "the world has ended");
        self.fail_asked_of(world, &failure);
        if self.worlds[world].state == State::Ended {
            return;
        }
        self.on_world_failed(world, &pack_failure(&failure));
        self.worlds[world].init = Init::Dead;
        self.settle_end(world);
    }

    /// A world is ended when its keeper has seen the end of all that it started, and its cgroup is
    /// empty: the end of init is told before the last of its processes is gone.
    pub(super) fn settle_end(&mut self, world: usize) {
        let known = &self.worlds[world];
        let over = known.state == State::Ended || known.ending.is_none();
        let finished = known.finished || known.keeper.is_none();
        if over || !finished || known.is_populated() {
            return;
        }
        self.worlds[world].state = State::Ended;
        self.worlds[world].look_at_ms = None;
        self.answer_waiting(world, Awaited::Ended);
        self.remove_leaves(world);
    }

    /// Requests that the keeper of a world was asked and won't answer.
    fn fail_asked_of(&mut self, world: usize, failure: &Failure) {
        let asked = |(id, stream): (u32, &Stream)| match stream {
            Stream::Asked { world: asked, .. } if *asked == world => Some(id),
            Stream::Outgoing(outgoing) if outgoing.needs_keeper_of(world) => Some(id),
            Stream::Incoming(incoming) if incoming.needs_keeper_of(world) => Some(id),
            _ => None,
        };
        let ids: Vec<u32> = self.streams.iter().filter_map(asked).collect();
        for id in ids {
            self.close_stream(id);
            self.fail(id, failure);
        }
    }

    /// Nobody writes the files of a world that ends: they are about to be graded.
    fn fail_writers_of(&mut self, world: usize) {
        let writing = |(id, stream): (u32, &Stream)| match stream {
            Stream::Incoming(incoming) if incoming.is_into(world) => Some(id),
            _ => None,
        };
        let ids: Vec<u32> = self.streams.iter().filter_map(writing).collect();
        for id in ids {
            self.close_stream(id);
            self.fail(id, &Failure::new(Code::WorldNotOpen, "the world ends"));
        }
    }

    fn remove_leaves(&mut self, world: usize) {
        self.execs.remove_leaves_of(world);
    }

    pub fn worlds_on_time(&mut self, now_ms: u64) {
        let late = |(id, stream): (u32, &Stream)| match stream {
            Stream::World(waiting) if waiting.deadline_ms.is_some_and(|at| at <= now_ms) => {
                Some(id)
            }
            _ => None,
        };
        let late: Vec<u32> = self.streams.iter().filter_map(late).collect();
        for id in late {
            self.fail(id, &Failure::new(Code::NotEmpty, "processes of the world are left"));
        }
        for world in 0..self.worlds.len() {
            let known = &self.worlds[world];
            if known.look_at_ms.is_none_or(|at| at > now_ms) {
                continue;
            }
            if !known.finished && now_ms > known.ending_ms.saturating_add(KEEPER_PATIENCE_MS) {
                let _ = process::kill(known.keeper_pid, libc::SIGKILL);
            }
            self.kill_world(world);
        }
    }
}

impl World {
    fn is_populated(&self) -> bool {
        let text = read_from_start(&self.population);
        !text.split(|byte| *byte == b'\n').any(|line| line == b"populated 0")
    }
}
