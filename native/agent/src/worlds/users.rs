//! Processes of each user of a world, where they are limited apart from those of the world as a whole.
//!
//! Commands of one user are in groups below one of theirs: what they start is counted there, whoever it becomes. The kernel's own
//! limit by user (RLIMIT_NPROC) holds too, one above it: it doesn't tell whom it refused.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::World;
use super::news::counter;
use crate::agent::Agent;
use crate::limits::USERS_COUNTED_MAX;
use crate::sys::fd::{Fd, c_path, open, read_from_start, write_file};
use crate::sys::{changes, check};

#[derive(Default)]
pub struct Users {
    /// How many processes each may have; `None`: as many as the world.
    most: Option<u64>,
    known: Vec<User>,
    told: bool,
}

struct User {
    name: Vec<u8>,
    /// pids.events, watched until it was told.
    refusals: Fd,
    watch: i32,
}

/// Where commands of a user are.
pub struct Place {
    /// The group in which that of a command is made.
    pub cgroup: String,
    /// Whose it is, where users are counted.
    pub user: Option<usize>,
}

impl Users {
    pub fn told(&self) -> bool {
        self.told
    }

    /// How often a user was refused a process; of all of them where none is named.
    pub fn refused(&self, user: Option<usize>) -> u64 {
        let counted = self.known.iter().enumerate().filter(|(at, _)| user.is_none_or(|u| u == *at));
        counted.map(|(_, user)| counter(&read_from_start(&user.refusals), b"max ")).sum()
    }
}

impl World {
    pub(super) fn limit_users(&mut self, most: Option<u64>) -> Result<(), i32> {
        if most.is_some() {
            write_file(format!("{}/cgroup.subtree_control", self.cgroup()).as_bytes(), b"+pids")?;
        }
        self.users.most = most;
        Ok(())
    }

    /// As the request names the user: its files are read later, by the keeper. A user with two names is counted by each, and by the
    /// kernel as one.
    pub fn place_of(&mut self, user: Option<&[u8]>, news: &Fd) -> Result<Place, i32> {
        let world = self.cgroup();
        let Some(most) = self.users.most else {
            return Ok(Place { cgroup: world, user: None });
        };
        let name = name_of(user);
        let known = self.users.known.iter().position(|user| user.name == name);
        let at = match known {
            Some(at) => at,
            None if self.users.known.len() >= USERS_COUNTED_MAX => {
                return Ok(Place { cgroup: world, user: None });
            }
            None => {
                let at = self.users.known.len();
                let group = group_of(&world, at);
                make_group(&group, most)?;
                let events = format!("{group}/pids.events");
                self.users.known.push(User {
                    name: name.to_vec(),
                    refusals: open(events.as_bytes(), libc::O_RDONLY, 0)?,
                    watch: changes::watch(news, events.as_bytes())?,
                });
                at
            }
        };
        Ok(Place { cgroup: group_of(&world, at), user: Some(at) })
    }
}

impl Agent {
    /// Tells once that a user was refused a process.
    pub(super) fn look_at_refused_users(&mut self, world: usize) {
        let users = &mut self.worlds[world].users;
        if users.told || users.refused(None) == 0 {
            return;
        }
        users.told = true;
        for user in &users.known {
            changes::forget(&self.changes.fd, user.watch);
        }
        self.tell_flag(world, "processesPerUser", None);
    }
}

/// Commands have no name with a dot.
fn group_of(world: &str, at: usize) -> String {
    format!("{world}/.{at}")
}

fn make_group(group: &str, most: u64) -> Result<(), i32> {
    let path = c_path(group.as_bytes())?;
    match check(unsafe { libc::mkdir(path.as_ptr(), 0o755) }) {
        Ok(_) | Err(libc::EEXIST) => {}
        Err(errno) => return Err(errno),
    }
    write_file(format!("{group}/pids.max").as_bytes(), format!("{most}").as_bytes())
}

/// Without the group that may stand behind it.
fn name_of(user: Option<&[u8]>) -> &[u8] {
    let name = user.and_then(|user| user.split(|byte| *byte == b':').next());
    name.filter(|name| *name != b"root").unwrap_or(b"0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (user, name) in [
            (None, "0"),
            (Some("root"), "0"),
            (Some("0:0"), "0"),
            (Some("root:staff"), "0"),
            (Some("ann"), "ann"),
            (Some("ann:staff"), "ann"),
            (Some("1000:1000"), "1000"),
        ] {
            assert_eq!(name_of(user.map(str::as_bytes)), name.as_bytes(), "{user:?}");
        }
    }
}
