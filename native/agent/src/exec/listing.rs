use super::{Exec, Execs};
use crate::agent::Agent;
use crate::limits::{COMMAND_KEPT_BYTES, COMMANDS_LISTED_BYTES, EXECS_LISTED_MAX};
use crate::pack::{self, Map};

impl Execs {
    /// The latest, oldest of them first.
    pub fn listed(&self) -> impl Iterator<Item = &Exec> {
        self.all.values().skip(self.all.len().saturating_sub(EXECS_LISTED_MAX))
    }
}

impl Agent {
    pub fn exec_list(&self) -> Map {
        let count = self.execs.listed().count();
        // One answer is one frame: the more commands, the less of each.
        let shown_bytes = (COMMANDS_LISTED_BYTES / count.max(1)).min(COMMAND_KEPT_BYTES);
        pack::map().array("execs", count, |out| {
            for exec in self.execs.listed() {
                let gone = !exec.running() && exec.left == 0;
                let (command, cut) = exec.command.first(shown_bytes);
                let map = pack::map()
                    .text("exec", &exec.name)
                    .text("world", &self.worlds[exec.world].name)
                    .flag("running", exec.running())
                    .number("pid", exec.pid)
                    .bytes("command", command)
                    .flag("cut", cut)
                    .number("startedMs", exec.started_wall_ms)
                    .number("processes", if gone { 0 } else { exec.processes() });
                let map = match exec.terminal {
                    true => map.number("screenBytes", exec.outputs[0].kept.total()),
                    false => map,
                };
                out.extend(map.finish());
            }
        })
    }
}
