use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use crate::agent::Agent;
use crate::exec::Exit;
use crate::keeper::message::{Message, Tag};
use crate::limits::MESSAGE_BYTES_MAX;
use crate::pack;
use crate::sys::fd::Fd;
use crate::sys::poller::{Interest, Poller, Watched};
use crate::sys::socket;

/// The agent's end of the socket to a keeper; what the socket doesn't take waits here.
pub struct KeeperLink {
    socket: Watched,
    queue: VecDeque<(Vec<u8>, Vec<Fd>)>,
    queued_bytes: usize,
}

impl KeeperLink {
    pub fn new(socket: Watched, poller: &Poller) -> KeeperLink {
        let mut link = KeeperLink { socket, queue: VecDeque::new(), queued_bytes: 0 };
        link.flush(poller);
        link
    }

    pub fn queued_bytes(&self) -> usize {
        self.queued_bytes
    }

    fn send(&mut self, bytes: Vec<u8>, descriptors: Vec<Fd>, poller: &Poller) {
        self.queued_bytes += bytes.len();
        self.queue.push_back((bytes, descriptors));
        self.flush(poller);
    }

    fn flush(&mut self, poller: &Poller) {
        while let Some((bytes, descriptors)) = self.queue.front() {
            let raw: Vec<i32> = descriptors.iter().map(Fd::raw).collect();
            if socket::send(&self.socket.fd, bytes, &raw) == Err(libc::EAGAIN) {
                break;
            }
            // Any other failure: the keeper is dead, which shows when its socket is read.
            self.queued_bytes -= bytes.len();
            self.queue.pop_front();
        }
        let waiting = !self.queue.is_empty();
        self.socket.watch(poller, if waiting { Interest::BOTH } else { Interest::READ });
    }

    pub fn close(mut self, poller: &Poller) {
        self.socket.watch(poller, Interest::NONE);
    }
}

impl Agent {
    pub fn say_to_keeper(
        &mut self,
        world: usize,
        tag: Tag,
        serial: u32,
        extras: &[u8],
        body: &[u8],
        descriptors: Vec<Fd>,
    ) {
        let bytes = Message { tag, serial, extras, body }.write();
        if let Some(keeper) = &mut self.worlds[world].keeper {
            keeper.send(bytes, descriptors, &self.poller);
        }
    }

    pub fn on_keeper(&mut self, world: usize) {
        const MESSAGES_MAX: usize = 32;
        let mut buffer = vec![0; MESSAGE_BYTES_MAX];
        for _ in 0..MESSAGES_MAX {
            let Some(keeper) = &mut self.worlds[world].keeper else {
                return;
            };
            keeper.flush(&self.poller);
            match socket::receive(&keeper.socket.fd, &mut buffer) {
                Ok((0, _)) => return self.on_keeper_gone(world),
                Ok((count, descriptors)) => self.on_message(world, &buffer[..count], descriptors),
                Err(libc::EAGAIN) => return,
                Err(_) => return self.on_keeper_gone(world),
            }
        }
    }

    fn on_message(&mut self, world: usize, bytes: &[u8], descriptors: Vec<Fd>) {
        let Some(message) = Message::parse(bytes) else {
            return;
        };
        let number = |key: &str| {
            pack::parse_map(message.body).and_then(|fields| fields.number(key)).unwrap_or(0)
        };
        match message.tag {
            Tag::Prepared => self.on_prepared(world, number("init") as i32),
            Tag::Opened => self.on_opened(world),
            Tag::InitEnded => self.on_init_ended(world),
            Tag::Finished => self.on_finished(world),
            Tag::Spawned => {
                let screen = descriptors.into_iter().next();
                self.on_spawned(message.serial, number("pid"), screen);
            }
            Tag::Exited => {
                let exit = Exit::of(number("status") as u32 as i32);
                self.on_exited(message.serial, exit.with_full_shm(number("shmFull") == 1));
            }
            Tag::Done => self.on_done(message.serial, message.body, descriptors.into_iter().next()),
            Tag::Failed if self.worlds[world].is_failed_by(message.serial) => {
                self.on_world_failed(world, message.body);
            }
            Tag::Failed if self.execs.starting(message.serial) => {
                self.on_not_spawned(message.serial, message.body);
            }
            Tag::Failed => self.on_failed(world, message.serial, message.body),
            _ => {}
        }
    }
}
