use super::{Exec, Execs};
use crate::agent::Agent;
use crate::limits::EXECS_LISTED_MAX;
use crate::pack::{self, Map};

impl Execs {
    /// The latest, oldest of them first.
    pub fn listed(&self) -> impl Iterator<Item = &Exec> {
        self.all.values().skip(self.all.len().saturating_sub(EXECS_LISTED_MAX))
    }
}

impl Agent {
    pub fn exec_list(&self) -> Map {
        pack::map().array("execs", self.execs.listed().count(), |out| {
            for exec in self.execs.listed() {
                let gone = !exec.running() && exec.left == 0;
                let map = pack::map()
                    .text("exec", &exec.name)
                    .text("world", &self.worlds[exec.world].name)
                    .flag("running", exec.running())
                    .number("pid", exec.pid)
                    .bytes("argv0", &exec.argv0)
                    .number("startedMs", exec.started_wall_ms)
                    .number("processes", if gone { 0 } else { exec.processes() });
                out.extend(map.finish());
            }
        })
    }
}
