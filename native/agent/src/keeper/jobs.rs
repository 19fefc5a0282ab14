//! Files. What is short is answered at once; what may take long is done by a child that is born in
//! the agent's pid namespace, so that nothing of the world sees it or can stop it.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::Link;
use super::message::{Message, Tag};
use crate::failure::{Code, Failure, Outcome};
use crate::files::{self, Answer, Job};
use crate::limits::JOBS_MAX;
use crate::pack;
use crate::sys::capabilities::{self, OF_KEEPER, SYS_ADMIN};
use crate::sys::fd::{self, Fd};
use crate::sys::process::{self, signals};

pub struct Jobs {
    ours: Fd,
    of_world: Fd,
    /// Children at work: pid → serial.
    running: BTreeMap<i32, u32>,
}

impl Jobs {
    pub fn new(ours: Fd, of_world: Fd) -> Jobs {
        Jobs { ours, of_world, running: BTreeMap::new() }
    }

    pub fn file(
        &mut self,
        link: &Link,
        message: &Message<'_>,
        descriptors: Vec<Fd>,
        open: bool,
    ) -> Outcome<()> {
        if !open {
            return Err(Failure::new(Code::WorldNotOpen, "the world is not open"));
        }
        let fields = pack::parse_map(message.body)?;
        match files::answer(&fields, descriptors)? {
            Answer::Done(body, descriptor) => {
                link.say_with(Tag::Done, message.serial, &body.finish(), descriptor.as_ref());
                Ok(())
            }
            Answer::Piped(body, end, job) => {
                // First, so that it comes before anything the job says.
                link.say_with(Tag::Done, message.serial, &body.finish(), Some(&end));
                self.start(link, message.serial, job)
            }
            Answer::Later(job) => self.start(link, message.serial, job),
        }
    }

    fn start(&mut self, link: &Link, serial: u32, job: Job<'_>) -> Outcome<()> {
        if self.running.len() >= JOBS_MAX {
            return Err(Failure::new(Code::Limit, "too many long file operations at once"));
        }
        let failed = |errno| Failure::system(errno, "start of a file operation");
        capabilities::set(OF_KEEPER | SYS_ADMIN, OF_KEEPER | SYS_ADMIN).map_err(failed)?;
        let born = process::bear_children_in(&self.ours).and_then(|()| process::fork());
        if born == Ok(0) {
            work(link, serial, job);
        }
        // Fails when the world's init is dead; no command can be started then either.
        let _ = process::bear_children_in(&self.of_world);
        let _ = capabilities::set(OF_KEEPER | SYS_ADMIN, OF_KEEPER);
        self.running.insert(born.map_err(failed)?, serial);
        Ok(())
    }

    pub fn is_idle(&self) -> bool {
        self.running.is_empty()
    }

    pub fn cancel(&mut self, serial: u32) {
        for (pid, _) in self.running.iter().filter(|(_, running)| **running == serial) {
            let _ = process::kill(*pid, libc::SIGKILL);
        }
    }

    pub fn cancel_all(&mut self) {
        for pid in self.running.keys() {
            let _ = process::kill(*pid, libc::SIGKILL);
        }
    }

    /// The serial of a job whose child was reaped.
    pub fn ended(&mut self, pid: i32) -> Option<u32> {
        self.running.remove(&pid)
    }
}

fn work(link: &Link, serial: u32, job: Job<'_>) -> ! {
    let administers = if job.needs_administration() { SYS_ADMIN } else { capabilities::NONE };
    let _ = capabilities::set(OF_KEEPER | administers, OF_KEEPER | administers);
    process::die_with_parent();
    signals::reset(libc::SIGCHLD);
    signals::unblock_all();
    let mut kept: Vec<i32> = [link.raw()].into_iter().chain(job.descriptors()).collect();
    kept.sort_unstable();
    fd::close_all_except(3, &kept);
    match job.run() {
        Ok(body) => link.say(Tag::Done, serial, &body.finish()),
        Err(failure) => link.fail(serial, &failure),
    }
    process::exit(0)
}
