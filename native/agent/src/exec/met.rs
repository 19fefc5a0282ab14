//! Limits that were met while a command ran, as far as its world can tell. Another command of the world may have had a part in it.
//!
//! What only the program itself sees isn't told: a refused descriptor (EMFILE), and a file at its largest size where the program
//! ignores the signal and is given EFBIG.

use crate::agent::Agent;
use crate::pack::{self, Map};

#[derive(Clone, Copy, Default)]
pub struct Met {
    pids: bool,
    user_pids: bool,
    disk: bool,
    file_size: bool,
}

impl Met {
    /// For the result: the names of those that were met.
    pub fn add_to(self, map: Map) -> Map {
        let all = [
            ("pids", self.pids),
            ("processesPerUser", self.user_pids),
            ("disk", self.disk),
            ("fileSize", self.file_size),
        ];
        let names = all.into_iter().filter_map(|(name, met)| met.then_some(name));
        map.array("limits", names.clone().count(), |out| {
            names.for_each(|name| pack::text(out, name));
        })
    }
}

impl Agent {
    /// What the command that has just ended has met; watchers hear of it too.
    pub(super) fn look_at_limits(&mut self, serial: u32) {
        let Some(exec) = self.execs.all.get(&serial) else {
            return;
        };
        let (world, name) = (exec.world, exec.name.clone());
        let (exit, refused_before) = (exec.exit, exec.refused_before);
        let (user, user_refused_before) = (exec.user, exec.user_refused_before);
        let known = &self.worlds[world];
        let met = Met {
            pids: known.refused() > refused_before,
            user_pids: user.is_some() && known.users.refused(user) > user_refused_before,
            disk: exit.shm_full || known.is_full(),
            file_size: known.file_bytes_max.is_some() && exit.by_signal(libc::SIGXFSZ as u8),
        };
        if met.disk {
            self.flag_disk(world, Some(&name));
        }
        if met.file_size {
            self.flag_file_size(world, &name);
        }
        if let Some(exec) = self.execs.get(serial) {
            exec.met = met;
        }
    }
}
