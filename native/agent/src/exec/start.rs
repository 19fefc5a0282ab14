use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::command::Shown;
use super::kept::Kept;
use super::met::Met;
use super::{Exec, Exit, Mode, Output, Reader, State};
use crate::agent::Agent;
use crate::clock::{now_us, wall_ms};
use crate::failure::{Code, Failure, Outcome};
use crate::keeper::message::Tag;
use crate::keeper::terminal::size;
use crate::limits::{
    EXECS_RUNNING_MAX, HEAD_BYTES_DEFAULT, NAME_BYTES_MAX, RING_BYTES_DEFAULT, RINGS_TOTAL_BYTES,
    START_LOOK_MS, TAIL_BYTES_DEFAULT,
};
use crate::pack::{self, Fields};
use crate::sink::Sink;
use crate::streams::Stream;
use crate::sys::check;
use crate::sys::fd::{Fd, c_path, never_wait, open, pipe};
use crate::sys::poller::{Interest, Watched};
use crate::token::Token;

impl Agent {
    pub fn request_start(&mut self, id: u32, fields: &Fields<'_>, payload: &[u8]) -> Outcome<()> {
        let world = self.open_world(fields)?;
        let name = parse_name(fields.bytes("exec")?)?;
        if self.execs.find(name.as_bytes()).is_ok() {
            return Err(Failure::new(Code::ExecExists, format!("exec {name} exists")));
        }
        if self.execs.all.values().filter(|exec| exec.running()).count() >= EXECS_RUNNING_MAX {
            return Err(Failure::new(Code::Limit, "too many commands run"));
        }
        let command = Shown::of(&fields.list("argv")?);
        let timeout_ms = fields.optional_number("timeoutMs")?;
        let kept = kept(fields)?;
        let forget = fields.optional_flag("forget")?.unwrap_or(false);
        let terminal = size(fields)?.is_some();
        if terminal && kept.mode != Mode::Stream {
            return Err(Failure::invalid("what a terminal shows is read while its command runs"));
        }
        let serial = self.next_serial();
        let user = fields.optional_bytes("user")?;
        let place = self.worlds[world]
            .place_of(user, &self.changes.fd)
            .map_err(|errno| Failure::system(errno, "group of a user"))?;
        let cgroup = format!("{}/{name}", place.cgroup);
        let plumbing = match terminal {
            true => Plumbing::of_terminal(&cgroup),
            false => Plumbing::lay(&cgroup, fields.flag("stdin")?),
        }
        .map_err(|errno| Failure::system(errno, "plumbing of a command"))?;
        let [stdout, stderr] = plumbing.outputs;
        let tokens = [Token::Stdout(serial), Token::Stderr(serial)].map(Token::pack);
        let stdin =
            plumbing.stdin.map(|pipe| Sink::new(Watched::new(pipe, Token::Stdin(serial).pack())));
        let output = |pipe: Option<Fd>, token, (head, ring)| Output {
            pipe: pipe.map(|pipe| Watched::new(pipe, token)),
            kept: Kept::new(head, ring),
            unread: None,
        };
        let started_us = now_us();
        let exec = Exec {
            serial,
            name,
            world,
            state: State::Starting,
            mode: kept.mode,
            terminal,
            command,
            pid: 0,
            cgroup,
            leaf_removed: false,
            started_wall_ms: wall_ms(),
            started_us,
            ended_us: started_us,
            deadline_ms: timeout_ms.map(|ms| (started_us / 1000).saturating_add(ms)),
            start_look_at_ms: Some(started_us / 1000 + START_LOOK_MS),
            timed_out: false,
            killed: false,
            exit: Exit::default(),
            left: 0,
            refused_before: self.worlds[world].refused(),
            user: place.user,
            user_refused_before: self.worlds[world].users.refused(place.user),
            met: Met::default(),
            delivered: false,
            forget,
            stdin,
            outputs: [
                output(stdout, tokens[0], kept.sizes()),
                output(stderr, tokens[1], kept.sizes()),
            ],
            reader: Some(id),
            leftovers_at_ms: None,
        };
        self.execs.all.insert(serial, exec);
        self.streams.add(id, Stream::Exec(Reader::new(serial, [0, 0])));
        self.say_to_keeper(world, Tag::Spawn, serial, &[], payload, plumbing.of_child);
        Ok(())
    }

    pub fn on_spawned(&mut self, serial: u32, pid: u64, screen: Option<Fd>) {
        if let Some(screen) = screen {
            self.connect_terminal(serial, screen);
        }
        let Some(exec) = self.execs.get(serial) else {
            return;
        };
        exec.state = State::Running;
        exec.start_look_at_ms = None;
        exec.pid = pid;
        for output in &mut exec.outputs {
            if let Some(pipe) = &mut output.pipe {
                pipe.watch(&self.poller, Interest::READ);
            }
        }
        let (reader, killed) = (exec.reader, exec.killed);
        if let Some(id) = reader {
            self.tell(id, pack::map().text("kind", "started").number("pid", pid));
        }
        if killed {
            self.kill_all_of(serial);
        }
    }

    /// The start failed; there is no such exec.
    pub fn on_not_spawned(&mut self, serial: u32, body: &[u8]) {
        if let Some(exec) = self.drop_exec(serial)
            && let Some(id) = exec.reader
        {
            self.fail_packed(id, body);
        }
    }
}

struct KeptSizes {
    mode: Mode,
    head: usize,
    tail: usize,
    ring: usize,
}

impl KeptSizes {
    /// Of the head and of the ring.
    fn sizes(&self) -> (usize, usize) {
        match self.mode {
            Mode::Stream => (0, self.ring),
            Mode::Buffered => (self.head, self.tail),
        }
    }
}

fn kept(fields: &Fields<'_>) -> Outcome<KeptSizes> {
    let size = |key: &str, default: usize| -> Outcome<usize> {
        let wanted = fields.optional_number(key)?.unwrap_or(default as u64);
        Ok(wanted.min(RINGS_TOTAL_BYTES as u64) as usize)
    };
    Ok(KeptSizes {
        mode: match fields.bytes("mode")? {
            b"stream" => Mode::Stream,
            b"buffered" => Mode::Buffered,
            _ => return Err(Failure::invalid("mode is neither stream nor buffered")),
        },
        head: size("headBytes", HEAD_BYTES_DEFAULT)?,
        tail: size("tailBytes", TAIL_BYTES_DEFAULT)?,
        ring: size("ringBytes", RING_BYTES_DEFAULT)?,
    })
}

fn parse_name(name: &[u8]) -> Outcome<String> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    match core::str::from_utf8(name) {
        Ok(text) if (1..=NAME_BYTES_MAX).contains(&text.len()) && name.iter().all(plain) => {
            Ok(text.into())
        }
        _ => Err(Failure::invalid("exec is not a name of 1 to 64 letters, digits, _ and -")),
    }
}

/// A command's cgroup and pipes.
struct Plumbing {
    stdin: Option<Fd>,
    outputs: [Option<Fd>; 2],
    /// For the keeper: cgroup, stdout, stderr, stdin if it has one.
    of_child: Vec<Fd>,
}

impl Plumbing {
    /// The keeper opens the terminal, which is the world's, and sends it with the news of the start.
    fn of_terminal(cgroup: &str) -> Result<Plumbing, i32> {
        Ok(Plumbing { stdin: None, outputs: [None, None], of_child: [make_leaf(cgroup)?].into() })
    }

    fn lay(cgroup: &str, with_stdin: bool) -> Result<Plumbing, i32> {
        let leaf = make_leaf(cgroup)?;
        let (stdout, stdout_of_child) = pipe(0)?;
        let (stderr, stderr_of_child) = pipe(0)?;
        let mut of_child: Vec<Fd> = [leaf, stdout_of_child, stderr_of_child].into();
        let stdin = if with_stdin {
            let (stdin_of_child, stdin) = pipe(0)?;
            never_wait(&stdin);
            of_child.push(stdin_of_child);
            Some(stdin)
        } else {
            None
        };
        never_wait(&stdout);
        never_wait(&stderr);
        Ok(Plumbing { stdin, outputs: [Some(stdout), Some(stderr)], of_child })
    }
}

fn make_leaf(cgroup: &str) -> Result<Fd, i32> {
    let path = c_path(cgroup.as_bytes())?;
    match check(unsafe { libc::mkdir(path.as_ptr(), 0o755) }) {
        // What an exec of this name left behind, whose record was dropped, still runs there.
        Ok(_) | Err(libc::EEXIST) => {}
        Err(errno) => return Err(errno),
    }
    open(cgroup.as_bytes(), libc::O_RDONLY | libc::O_DIRECTORY, 0)
}
