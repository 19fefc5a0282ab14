//! What the agent tells unasked, to streams that watch.

use alloc::vec::Vec;

use super::{Ender, World};
use crate::agent::Agent;
use crate::pack::{self, Map};
use crate::streams::Stream;
use crate::sys::changes;
use crate::sys::fd::read_from_start;
use crate::sys::stat::is_full;

/// So often two counters are read that belong together, until nothing came in between.
const SETTLED_LOOKS: usize = 16;

impl World {
    /// How often a new process was refused for the limit of the world. What a user was refused for his own counts above it too.
    pub fn refused(&self) -> u64 {
        let mut of_users = self.users.refused(None);
        for _ in 0..SETTLED_LOOKS {
            let all = counter(&read_from_start(&self.refusals), b"max ");
            let before = core::mem::replace(&mut of_users, self.users.refused(None));
            if before == of_users {
                return all.saturating_sub(of_users);
            }
        }
        // A bomb of some user: it meets that limit and not this one.
        0
    }

    /// Whether its writable layer is.
    pub fn is_full(&self) -> bool {
        is_full(self.upper().as_bytes())
    }
}

impl Agent {
    fn tell_watchers(&mut self, news: impl Fn() -> Map) {
        let watching = |(id, stream): (u32, &Stream)| matches!(stream, Stream::Watch).then_some(id);
        let ids: Vec<u32> = self.streams.iter().filter_map(watching).collect();
        for id in ids {
            self.tell(id, news());
        }
    }

    pub(super) fn tell_world_ended(&mut self, world: usize) {
        let name = self.worlds[world].name.clone();
        self.tell_watchers(|| {
            let map = pack::map().text("kind", "world_ended").text("world", &name);
            map.text("by", Ender::Episode.as_str())
        });
    }

    /// Files of some cgroup changed.
    pub fn on_changes(&mut self) {
        changes::drain(&self.changes.fd);
        for world in 0..self.worlds.len() {
            self.look_at_refusals(world);
            self.look_at_refused_users(world);
            self.settle_end(world);
        }
    }

    /// Tells once that a process was refused. A bomb is refused many times; nobody is told, or
    /// woken, again.
    fn look_at_refusals(&mut self, world: usize) {
        let known = &mut self.worlds[world];
        if known.told_pids || known.refused() == 0 {
            return;
        }
        known.told_pids = true;
        changes::forget(&self.changes.fd, known.refusals_watch);
        self.tell_flag(world, "pids", None);
    }

    /// The writable layer of a world was found full, by `exec` where known.
    pub fn flag_disk(&mut self, world: usize, exec: Option<&str>) {
        if !core::mem::replace(&mut self.worlds[world].told_disk, true) {
            self.tell_flag(world, "disk", exec);
        }
    }

    /// Bytes of a command's output were dropped: it printed more than is kept.
    pub fn flag_output(&mut self, world: usize, serial: u32) {
        if !core::mem::replace(&mut self.worlds[world].told_output, true) {
            let exec = self.execs.name(serial);
            self.tell_flag(world, "output", exec.as_deref());
        }
    }

    /// A new watcher hears of flags that were met before it came: an earlier one may have gone with them.
    pub fn tell_known_flags(&mut self, id: u32) {
        for at in 0..self.worlds.len() {
            let world = &self.worlds[at];
            let known = [
                ("pids", world.told_pids),
                ("processesPerUser", world.users.told()),
                ("disk", world.told_disk),
                ("output", world.told_output),
                ("fileSize", world.told_file_size),
            ];
            for (flag, _) in known.into_iter().filter(|(_, told)| *told) {
                let event = flag_event(&self.worlds[at].name, flag, None);
                self.tell(id, event);
            }
        }
    }

    /// A command was ended because a file of it had become too large.
    pub fn flag_file_size(&mut self, world: usize, exec: &str) {
        if !core::mem::replace(&mut self.worlds[world].told_file_size, true) {
            self.tell_flag(world, "fileSize", Some(exec));
        }
    }

    pub(super) fn tell_flag(&mut self, world: usize, flag: &'static str, exec: Option<&str>) {
        let name = self.worlds[world].name.clone();
        self.tell_watchers(|| flag_event(&name, flag, exec));
    }
}

fn flag_event(world: &str, flag: &str, exec: Option<&str>) -> Map {
    let map = pack::map().text("kind", "flag").text("world", world).text("flag", flag);
    match exec {
        Some(exec) => map.text("exec", exec),
        None => map,
    }
}

/// The number behind `name` at the start of a line.
pub(super) fn counter(text: &[u8], name: &[u8]) -> u64 {
    let line = text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(name));
    line.and_then(|digits| core::str::from_utf8(digits).ok()?.trim().parse().ok()).unwrap_or(0)
}
