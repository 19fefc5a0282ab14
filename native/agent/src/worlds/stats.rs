use alloc::format;

use super::news::counter;
use super::{State, World};
use crate::agent::Agent;
use crate::pack::{self, Map};
use crate::sys::fd::read_file;
use crate::sys::stat::space;

impl Agent {
    pub fn stats(&self) -> Map {
        let worlds = self.worlds.iter().filter(|world| world.state != State::Prepared);
        let worlds: alloc::vec::Vec<_> = worlds.map(World::stats).collect();
        pack::map()
            .array("worlds", worlds.len(), |out| {
                worlds.into_iter().for_each(|world| out.extend(world.finish()));
            })
            .number("rings", self.execs.held_bytes() as u64)
    }
}

impl World {
    fn stats(&self) -> Map {
        let number = |file: &str| {
            let text = read_file(format!("{}/{file}", self.cgroup()).as_bytes(), 64);
            counter(&text.unwrap_or_default(), b"")
        };
        let map = pack::map()
            .text("world", &self.name)
            .number("processes", number("pids.current"))
            .number("pidsPeak", number("pids.peak"))
            .number("pidsRefused", self.refused())
            .number("userPidsRefused", self.users.refused(None));
        let space = space(self.upper().as_bytes()).unwrap_or_default();
        map.number("upperUsedBytes", space.total_bytes - space.free_bytes)
            .number("upperTotalBytes", space.total_bytes)
            .number("upperInodesUsed", space.inodes_total - space.inodes_free)
            .number("upperInodesTotal", space.inodes_total)
    }
}
