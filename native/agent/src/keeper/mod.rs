//! The keeper of one world: it lives in the agent's pid namespace, so that nothing of the world sees
//! it, and in the world's mount namespace and root, so that paths mean what the world means.
//! It starts and reaps commands and does what files need; the agent moves the bytes.
//!
//! ```
//! prepare ─▶ prepared ─ Open ─▶ open ─ Finish, or the agent is gone ─▶ exit
//! ```

mod account;
mod child;
mod explain;
mod given;
mod host_name;
mod jobs;
mod machine;
pub mod message;
mod open;
mod prepare;
mod spawn;
pub mod terminal;
mod topology;

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use crate::failure::{Code, Failure, Outcome};
use crate::limits::MESSAGE_BYTES_MAX;
use crate::pack;
use crate::sys::fd::{self, Fd};
use crate::sys::process::{self, signals};
use crate::sys::socket;
use crate::sys::stat::is_full;
use message::{Message, Tag, pack_failure};
use prepare::Prepared;
use spawn::Limits;

pub struct Keeper {
    link: Link,
    prepared: Prepared,
    /// Of commands; known once the world is open.
    limits: Option<Limits>,
    /// Running commands: pid → serial.
    commands: BTreeMap<i32, u32>,
    /// No command starts any more; files are still served, for graders.
    ended: bool,
    init_dead: bool,
    /// The agent knows that nothing of the world is left.
    told_finished: bool,
}

/// Runs in the forked child.
pub fn main(socket: Fd) -> ! {
    fd::close_all_except(3, &[socket.raw()]);
    // A command's process shares this one's memory until exec, and the world sees it already.
    process::hide_memory();
    signals::interrupt_waits_on_children();
    let link = Link { socket };
    let prepared = match prepare::prepare() {
        Ok(prepared) => prepared,
        Err(failure) => {
            link.fail(0, &failure);
            process::exit(1)
        }
    };
    link.say(Tag::Prepared, 0, &pack::map().number("init", prepared.init as u64).finish());
    let commands = BTreeMap::new();
    let (limits, ended) = (None, false);
    Keeper { link, prepared, limits, commands, ended, init_dead: false, told_finished: false }.run()
}

impl Keeper {
    fn run(mut self) -> ! {
        let mut buffer = vec![0; MESSAGE_BYTES_MAX];
        loop {
            self.reap();
            self.finish();
            if !signals::wait_readable(self.link.socket.raw(), false, None) {
                continue;
            }
            match socket::receive(&self.link.socket, &mut buffer) {
                Ok((0, _)) => self.abandon(),
                Ok((count, descriptors)) => self.handle(&buffer[..count], descriptors),
                Err(libc::EAGAIN) => {}
                Err(_) => self.abandon(),
            }
        }
    }

    fn handle(&mut self, bytes: &[u8], descriptors: Vec<Fd>) {
        let Some(message) = Message::parse(bytes) else {
            return;
        };
        let serial = message.serial;
        let done = match message.tag {
            Tag::Open => self.open(&message),
            Tag::Spawn => self.spawn(&message, descriptors),
            Tag::Rename => self.rename(&message),
            // Between the order to end and the end nothing new begins.
            Tag::File if self.ended && !self.told_finished => {
                Err(Failure::new(Code::WorldNotOpen, "the world ends"))
            }
            Tag::File => {
                self.prepared.jobs.file(&self.link, &message, descriptors, self.limits.is_some())
            }
            Tag::Cancel => {
                self.prepared.jobs.cancel(serial);
                Ok(())
            }
            Tag::Finish => {
                self.ended = true;
                self.prepared.jobs.cancel_all();
                Ok(())
            }
            _ => Ok(()),
        };
        if let Err(failure) = done {
            self.link.fail(serial, &failure);
        }
    }

    fn open(&mut self, message: &Message<'_>) -> Outcome<()> {
        if self.limits.is_some() {
            return Err(Failure::new(Code::Exists, "the world is open"));
        }
        self.limits = Some(open::open(message, &self.prepared)?);
        self.link.say(Tag::Opened, message.serial, &pack::map().finish());
        Ok(())
    }

    fn rename(&mut self, message: &Message<'_>) -> Outcome<()> {
        host_name::renew(&pack::parse_map(message.body)?)?;
        self.link.say(Tag::Done, message.serial, &pack::map().finish());
        Ok(())
    }

    fn spawn(&mut self, message: &Message<'_>, descriptors: Vec<Fd>) -> Outcome<()> {
        let limits = match &self.limits {
            Some(limits) if !self.ended => limits,
            _ => return Err(Failure::new(Code::WorldNotOpen, "the world is not open")),
        };
        let started = spawn::spawn(message, descriptors, limits, &self.prepared.silence)?;
        self.commands.insert(started.pid, message.serial);
        let body = pack::map().number("pid", started.pid_inside as u64).finish();
        self.link.say_with(Tag::Spawned, message.serial, &body, started.screen.as_ref());
        Ok(())
    }

    fn reap(&mut self) {
        while let Some((pid, status)) = process::reap() {
            if pid == self.prepared.init {
                self.init_dead = true;
                self.link.say(Tag::InitEnded, 0, &[]);
            } else if let Some(serial) = self.commands.remove(&pid) {
                // The agent can't see it: it is mounted in this world alone.
                let body = pack::map().number("status", status as u32 as u64);
                let body = body.number("shmFull", is_full(b"/dev/shm").into());
                self.link.say(Tag::Exited, serial, &body.finish());
            } else if let Some(serial) = self.prepared.jobs.ended(pid) {
                // Unheard where the job has said its own end before.
                let failure = Failure::new(Code::Io, "the file operation was broken off");
                self.link.fail(serial, &failure);
            }
        }
    }

    /// Says when all that this keeper started for the world is gone, its own long work too.
    fn finish(&mut self) {
        let gone = self.init_dead && self.commands.is_empty() && self.prepared.jobs.is_idle();
        if self.ended && gone && !self.told_finished {
            self.told_finished = true;
            self.link.say(Tag::Finished, 0, &[]);
        }
    }

    /// Without the agent nobody asks any more, and the sandbox is about to end.
    fn abandon(&mut self) -> ! {
        let _ = process::kill(self.prepared.init, libc::SIGKILL);
        self.prepared.jobs.cancel_all();
        process::exit(0)
    }
}

/// The socket to the agent, for the keeper and for the children that do its long work.
pub struct Link {
    socket: Fd,
}

impl Link {
    pub fn say(&self, tag: Tag, serial: u32, body: &[u8]) {
        self.say_with(tag, serial, body, None);
    }

    /// Waits while the agent is behind: it always reads.
    pub fn say_with(&self, tag: Tag, serial: u32, body: &[u8], descriptor: Option<&Fd>) {
        let bytes = Message { tag, serial, extras: &[], body }.write();
        let raw: Vec<i32> = descriptor.iter().map(|fd| fd.raw()).collect();
        while let Err(libc::EAGAIN) = socket::send(&self.socket, &bytes, &raw) {
            wait_writable(&self.socket);
        }
    }

    pub fn fail(&self, serial: u32, failure: &Failure) {
        self.say(Tag::Failed, serial, &pack_failure(failure));
    }

    pub fn raw(&self) -> i32 {
        self.socket.raw()
    }
}

fn wait_writable(socket: &Fd) {
    let mut poll = libc::pollfd { fd: socket.raw(), events: libc::POLLOUT, revents: 0 };
    unsafe { libc::poll(&mut poll, 1, 1000) };
}
