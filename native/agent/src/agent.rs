//! One thread, one loop: wait for events, handle each, move bytes in bounded turns.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;

use crate::clock::now_ms;
use crate::connection::{Connection, Read};
use crate::exec::Execs;
use crate::identity::Identity;
use crate::limits::OUTPUT_BYTES_MAX;
use crate::ports::Ports;
use crate::relay::Relay;
use crate::streams::Streams;
use crate::sys::capabilities;
use crate::sys::changes;
use crate::sys::fd::{Fd, write_all_blocking, write_file};
use crate::sys::mount::{self, NO_SUID_DEV_EXEC, mount};
use crate::sys::poller::{Interest, Poller, Watched};
use crate::sys::process::signals;
use crate::token::Token;
use crate::worlds::World;
use crate::worlds::paths::{CGROUPS, RUN};

pub struct Agent {
    pub poller: Poller,
    pub connection: Connection,
    /// News of cgroups.
    pub changes: Watched,
    pub identity: Identity,
    pub streams: Streams,
    pub worlds: Vec<World>,
    pub execs: Execs,
    pub relay: Relay,
    pub ports: Ports,
    /// Whose answer of a keeper belongs to which stream.
    pub waiting: BTreeMap<u32, u32>,
    /// Since when the agent stands still, to be saved.
    pub frozen_since_ms: Option<u64>,
    serials: u32,
}

/// Until the sandbox's time is over; gives the exit status.
pub fn run() -> i32 {
    match start() {
        Ok(agent) => agent.live(),
        Err(words) => {
            write_all_blocking(2, b"agent: ");
            write_all_blocking(2, words.as_bytes());
            write_all_blocking(2, b"\n");
            71
        }
    }
}

fn start() -> Result<Agent, alloc::string::String> {
    signals::ignore(libc::SIGPIPE);
    // Children vanish when they end; a keeper's end shows on its socket.
    signals::ignore(libc::SIGCHLD);
    // What no exec below can gain; this process itself never calls it.
    capabilities::bound(capabilities::OF_COMMANDS);
    unsafe { libc::umask(0o022) };
    let failed = |what: &'static str| move |errno| format!("{what}: errno {errno}");
    mount(b"tmpfs", RUN.as_bytes(), "tmpfs", NO_SUID_DEV_EXEC, b"size=64k,nr_inodes=128,mode=700")
        .map_err(failed("tmpfs on /run"))?;
    mount(b"cgroup2", CGROUPS.as_bytes(), "cgroup2", NO_SUID_DEV_EXEC, b"")
        .map_err(failed("cgroup2"))?;
    write_file(format!("{CGROUPS}/cgroup.subtree_control").as_bytes(), b"+pids")
        .map_err(failed("cgroup.subtree_control"))?;
    // Layers that the host mounts later show up in every world that is prepared.
    mount::share(b"/").map_err(failed("sharing of /"))?;
    let poller = Poller::new().map_err(failed("epoll"))?;
    let connection = Connection::new(
        Watched::new(Fd::own(0), Token::Input.pack()),
        Watched::new(Fd::own(1), Token::Output.pack()),
    );
    let changes = changes::open().map_err(failed("inotify"))?;
    let mut changes = Watched::new(changes, Token::Changes.pack());
    changes.watch(&poller, Interest::READ);
    let mut agent = Agent {
        poller,
        connection,
        changes,
        identity: Identity::draw(),
        streams: Streams::default(),
        worlds: Vec::new(),
        execs: Execs::default(),
        relay: Relay::default(),
        ports: Ports::default(),
        waiting: BTreeMap::new(),
        frozen_since_ms: None,
        serials: 0,
    };
    agent.prepare_world("main").map_err(|failure| format!("world main: {}", failure.message))?;
    Ok(agent)
}

impl Agent {
    pub fn next_serial(&mut self) -> u32 {
        self.serials += 1;
        self.serials
    }

    fn live(mut self) -> i32 {
        while !self.over() {
            let reading = !self.connection.full() && self.queued_for_keepers() < OUTPUT_BYTES_MAX;
            self.connection.watch(&self.poller, reading);
            self.watch_relay();
            let ready = self.poller.wait(self.wait_ms());
            for token in ready.tokens().filter_map(Token::unpack) {
                self.handle(token);
            }
            self.on_time();
            if !self.frozen() {
                self.move_bytes();
            }
            if self.connection.flush() == Read::Gone {
                self.forget_peer();
            }
        }
        write_all_blocking(2, b"agent: expired\n");
        0
    }

    fn handle(&mut self, token: Token) {
        match token {
            Token::Input => self.read_input(),
            // The loop flushes in each turn.
            Token::Output => {}
            Token::Changes => self.on_changes(),
            Token::Keeper(world) => self.on_keeper(world as usize),
            Token::Stdin(exec) => self.on_stdin(exec),
            Token::Stdout(exec) => self.on_output(exec, 0),
            Token::Stderr(exec) => self.on_output(exec, 1),
            Token::Stream(stream) => self.on_stream(stream),
            Token::Relay => self.accept_connections(),
        }
    }

    /// How long nothing may happen: 0 while there are bytes to move.
    fn wait_ms(&self) -> i32 {
        if self.streams.any_ready() && !self.connection.busy() && !self.frozen() {
            return 0;
        }
        match self.next_ms() {
            Some(at) => at.saturating_sub(now_ms()).min(3_600_000) as i32,
            None => -1,
        }
    }

    /// When something is due, whatever comes. The clock is asked only where something is: early in a sandbox's life that is a
    /// system call each time.
    fn next_ms(&self) -> Option<u64> {
        let next = [self.connection.look_at_ms(), self.ends_at_ms()];
        let of_live = [
            self.execs.next_ms(),
            self.streams.next_deadline_ms(),
            self.ports.waits.look_at_ms(),
            self.worlds.iter().filter_map(World::look_at_ms).min(),
        ];
        let of_live = of_live.into_iter().filter(|_| !self.frozen());
        next.into_iter().chain(of_live).flatten().min()
    }

    fn on_time(&mut self) {
        if self.next_ms().is_none() {
            return;
        }
        let now = now_ms();
        if self.connection.look_at_ms().is_some_and(|at| at <= now) {
            self.read_input();
        }
        if !self.frozen() {
            self.execs_on_time(now);
            self.worlds_on_time(now);
            self.ports_on_time(now);
        }
    }

    fn over(&self) -> bool {
        self.ends_at_ms().is_some_and(|at| at <= now_ms())
    }

    fn ends_at_ms(&self) -> Option<u64> {
        self.identity.ends_at_ms(self.connection.detached_since_ms(), self.frozen())
    }

    fn read_input(&mut self) {
        const READS_MAX: usize = 4;
        for _ in 0..READS_MAX {
            match self.connection.read() {
                Read::Some => self.handle_frames(),
                Read::Nothing => break,
                Read::Gone => {
                    self.forget_peer();
                    break;
                }
            }
            if self.connection.full() {
                break;
            }
        }
    }

    fn queued_for_keepers(&self) -> usize {
        self.worlds.iter().map(World::queued_bytes).sum()
    }
}
