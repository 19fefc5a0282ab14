use super::fd::Fd;
use super::{check, errno};

/// What a descriptor waits for; `NONE` takes it out, so that a hang-up can't spin the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest(u32);

impl Interest {
    pub const NONE: Interest = Interest(0);
    pub const READ: Interest = Interest(libc::EPOLLIN as u32);
    /// Only news: what is ready and stays so is told once.
    pub const READ_NEWS: Interest = Interest((libc::EPOLLIN | libc::EPOLLET) as u32);
    pub const WRITE: Interest = Interest(libc::EPOLLOUT as u32);
    pub const BOTH: Interest = Interest((libc::EPOLLIN | libc::EPOLLOUT) as u32);

    pub fn if_true(self, wanted: bool) -> Interest {
        if wanted { self } else { Interest::NONE }
    }
}

pub struct Poller {
    epoll: Fd,
}

pub struct Ready {
    events: [libc::epoll_event; 64],
    count: usize,
}

impl Ready {
    pub fn tokens(&self) -> impl Iterator<Item = u64> + '_ {
        self.events[..self.count].iter().map(|event| event.u64)
    }
}

impl Poller {
    pub fn new() -> Result<Poller, i32> {
        let epoll = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        Ok(Poller { epoll: Fd::own(epoll as i32) })
    }

    /// Waits for up to `timeout_ms` (-1: for ever).
    pub fn wait(&self, timeout_ms: i32) -> Ready {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 64];
        let count = unsafe {
            libc::epoll_wait(self.epoll.raw(), events.as_mut_ptr(), events.len() as i32, timeout_ms)
        };
        Ready { events, count: count.max(0) as usize }
    }

    fn control(&self, operation: i32, fd: i32, token: u64, interest: Interest) -> Result<(), i32> {
        let mut event = libc::epoll_event { events: interest.0, u64: token };
        match unsafe { libc::epoll_ctl(self.epoll.raw(), operation, fd, &mut event) } {
            0 => Ok(()),
            _ => Err(errno()),
        }
    }
}

/// A descriptor with its place in the poller. Take it out with `watch(NONE)` before it is dropped:
/// a registration lives as long as any copy of the open file.
#[derive(Debug)]
pub struct Watched {
    pub fd: Fd,
    token: u64,
    interest: Interest,
}

impl Watched {
    pub fn new(fd: Fd, token: u64) -> Watched {
        Watched { fd, token, interest: Interest::NONE }
    }

    pub fn watch(&mut self, poller: &Poller, interest: Interest) {
        if interest == self.interest {
            return;
        }
        let operation = match (self.interest, interest) {
            (Interest::NONE, _) => libc::EPOLL_CTL_ADD,
            (_, Interest::NONE) => libc::EPOLL_CTL_DEL,
            _ => libc::EPOLL_CTL_MOD,
        };
        let done = poller.control(operation, self.fd.raw(), self.token, interest);
        if done.is_ok() {
            self.interest = interest;
        }
    }
}
