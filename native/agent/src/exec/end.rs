use super::{Exec, Execs, State};
use crate::agent::Agent;
use crate::clock::now_us;
use crate::limits::{EXECS_ENDED_MAX, RINGS_TOTAL_BYTES, START_LOOK_MS, TERMINAL_HELD_BYTES};
use crate::pack::{self, Map};
use crate::sys::fd::readable_bytes;
use crate::sys::poller::{Interest, Watched};

/// How a command ended: by itself, or by a signal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    code: Option<u8>,
    signal: Option<u8>,
    /// The shared memory of its world was full then.
    pub(super) shm_full: bool,
}

impl Exit {
    pub fn of(status: i32) -> Exit {
        if libc::WIFSIGNALED(status) {
            return Exit::by(None, Some(libc::WTERMSIG(status) as u8));
        }
        Exit::by(Some(libc::WEXITSTATUS(status) as u8), None)
    }

    fn by(code: Option<u8>, signal: Option<u8>) -> Exit {
        Exit { code, signal, shm_full: false }
    }

    pub fn with_full_shm(self, shm_full: bool) -> Exit {
        Exit { shm_full, ..self }
    }

    /// Whether this signal ended it, or what its shell ran last.
    pub(super) fn by_signal(self, signal: u8) -> bool {
        self.signal == Some(signal) || self.code == Some(128 + signal)
    }
}

impl Agent {
    /// The command has ended. What its pipes hold now is its output; what comes later is not.
    pub fn on_exited(&mut self, serial: u32, exit: Exit) {
        let positions = [0, 1].map(|at| self.reader_position(serial, at));
        let Some(exec) = self.execs.all.get_mut(&serial) else {
            return;
        };
        if !matches!(exec.state, State::Starting | State::Running) {
            return;
        }
        exec.state = State::Draining;
        exec.exit = exit;
        exec.ended_us = now_us();
        exec.deadline_ms = None;
        exec.start_look_at_ms = None;
        // Most commands leave nothing, and then there is nothing to count.
        exec.left = if exec.remove_leaf() { 0 } else { exec.processes() };
        if let Some(mut stdin) = exec.stdin.take() {
            stdin.close(&self.poller);
        }
        for (at, position) in positions.into_iter().enumerate() {
            let output = &mut exec.outputs[at];
            // A terminal doesn't say all that it holds; it is read until it has no more.
            let held = |pipe: &Watched| match exec.terminal {
                true => TERMINAL_HELD_BYTES,
                false => readable_bytes(pipe.fd.raw()),
            };
            output.unread = output.pipe.as_ref().map(held);
            exec.watch(at, position, &self.poller);
        }
        match self.execs.get(serial).is_some_and(|exec| exec.terminal) {
            true => self.drain_terminal(serial),
            false => self.settle_exec(serial),
        }
    }

    /// From draining to ended, when nothing of its own is left in the pipes.
    pub(super) fn settle_exec(&mut self, serial: u32) {
        let Some(exec) = self.execs.all.get_mut(&serial) else {
            return;
        };
        let drained = exec.outputs.iter().all(|o| o.pipe.is_none() || o.unread == Some(0));
        if exec.state != State::Draining || !drained {
            return;
        }
        exec.state = State::Ended;
        let held_on = exec.left > 0 && !exec.terminal;
        for output in &mut exec.outputs {
            if let Some(pipe) = &mut output.pipe {
                pipe.watch(&self.poller, Interest::READ.if_true(held_on));
            }
            if !held_on {
                output.pipe = None;
            }
        }
        if let Some(id) = exec.reader {
            self.streams.mark_ready(id);
        }
        self.look_at_limits(serial);
        self.make_room();
    }

    /// The keeper is gone: nothing of its commands runs, and nobody will say how they ended.
    pub fn lose_execs_of(&mut self, world: usize) {
        let running: alloc::vec::Vec<u32> = self
            .execs
            .of_world(world)
            .filter(|exec| matches!(exec.state, State::Starting | State::Running))
            .map(|exec| exec.serial)
            .collect();
        for serial in running {
            self.on_exited(serial, Exit::by(None, Some(libc::SIGKILL as u8)));
        }
    }

    pub fn execs_on_time(&mut self, now_ms: u64) {
        let due = |exec: &&mut Exec| {
            exec.deadline_ms.is_some_and(|at| at <= now_ms)
                || exec.start_look_at_ms.is_some_and(|at| at <= now_ms)
                || exec.leftovers_at_ms.is_some_and(|at| at <= now_ms)
        };
        let mut late = alloc::vec::Vec::new();
        let mut draining = alloc::vec::Vec::new();
        for exec in self.execs.all.values_mut().filter(due) {
            if exec.deadline_ms.take_if(|at| *at <= now_ms).is_some() {
                exec.timed_out = true;
                late.push(exec.serial);
            }
            if exec.start_look_at_ms.take_if(|at| *at <= now_ms).is_some() {
                exec.start_look_at_ms = Some(now_ms + START_LOOK_MS);
                exec.go_on();
            }
            if exec.leftovers_at_ms.take_if(|at| *at <= now_ms).is_some() {
                if exec.state == State::Draining {
                    draining.push(exec.serial);
                    continue;
                }
                for pipe in exec.outputs.iter_mut().filter_map(|output| output.pipe.as_mut()) {
                    pipe.watch(&self.poller, Interest::READ);
                }
            }
        }
        for serial in late {
            self.kill_all_of(serial);
        }
        for serial in draining {
            self.drain_terminal(serial);
        }
    }

    /// Forgets the oldest ended execs beyond what is kept, and those that were read when there is
    /// little room for output.
    fn make_room(&mut self) {
        while let Some(serial) = self.execs.superfluous() {
            self.drop_exec(serial);
        }
    }

    /// The exec and its descriptors; its processes live on, in its leaf.
    pub(super) fn drop_exec(&mut self, serial: u32) -> Option<Exec> {
        let mut exec = self.execs.remove(serial)?;
        if let Some(stdin) = &mut exec.stdin {
            stdin.close(&self.poller);
        }
        for pipe in exec.outputs.iter_mut().filter_map(|output| output.pipe.as_mut()) {
            pipe.watch(&self.poller, Interest::NONE);
        }
        exec.remove_leaf();
        Some(exec)
    }
}

impl Execs {
    fn superfluous(&self) -> Option<u32> {
        let ended =
            || self.all.values().filter(|exec| exec.state == State::Ended && exec.reader.is_none());
        if ended().count() > EXECS_ENDED_MAX {
            return ended().next().map(|exec| exec.serial);
        }
        if self.budget.used() > RINGS_TOTAL_BYTES / 2 {
            return ended()
                .find(|exec| exec.delivered && exec.holds_output())
                .map(|exec| exec.serial);
        }
        None
    }
}

impl Exec {
    fn holds_output(&self) -> bool {
        self.outputs.iter().any(|output| output.kept.total() > 0)
    }

    pub(super) fn result(&self) -> Map {
        let count = |at: usize| {
            let kept = &self.outputs[at].kept;
            pack::map().number("totalBytes", kept.total()).number("droppedBytes", kept.lost())
        };
        let map = pack::map()
            .optional_number("exitCode", self.exit.code.map(u64::from))
            .optional_number("signal", self.exit.signal.map(u64::from))
            .flag("timedOut", self.timed_out)
            .flag("killed", self.killed || self.timed_out)
            .number("durationUs", self.ended_us.saturating_sub(self.started_us))
            .map("stdout", count(0))
            .map("stderr", count(1))
            .number("left", self.left);
        self.met.add_to(map)
    }
}
