//! From a request to a running command.

use alloc::ffi::CString;
use alloc::vec::Vec;

use super::account::{Account, resolve};
use super::child::{self, Plan, Stage};
use super::explain::explain;
use super::message::Message;
use super::terminal::{self, Terminal};
use crate::failure::{Code, Failure, Outcome};
use crate::pack::{self, Fields};
use crate::sys::fd::{Fd, c_path};
use crate::sys::process;

/// What every command of the world is held to.
pub struct Limits {
    pub processes: u64,
    /// Of each user.
    pub user_processes: Option<u64>,
    pub open_files: u64,
    pub file_bytes: Option<u64>,
}

/// What no command can be allowed beyond.
pub struct Ceilings {
    processes: u64,
    open_files: u64,
    file_bytes: u64,
}

impl Ceilings {
    pub fn known() -> Ceilings {
        Ceilings {
            processes: process::highest_limit(libc::RLIMIT_NPROC),
            open_files: process::highest_limit(libc::RLIMIT_NOFILE),
            file_bytes: process::highest_limit(libc::RLIMIT_FSIZE),
        }
    }
}

/// The per-user count of processes is the second wall behind the cgroup. It counts the agent's own
/// processes and those of other worlds too.
const PROCESSES_BESIDE_THE_WORLD: u64 = 64;

impl Limits {
    pub fn parse(fields: &Fields<'_>, ceilings: &Ceilings) -> Outcome<Limits> {
        let processes = fields.number("pidsMax")?.saturating_add(PROCESSES_BESIDE_THE_WORLD);
        let file_bytes = fields.optional_number("fileBytesMax")?;
        Ok(Limits {
            processes: processes.min(ceilings.processes),
            user_processes: fields.optional_number("userPidsMax")?,
            open_files: fields.number("nofileMax")?.min(ceilings.open_files),
            file_bytes: file_bytes.map(|bytes| bytes.min(ceilings.file_bytes)),
        })
    }

    /// RLIMIT_NPROC of a command: above what its groups allow, so that those are met first, which tell of it.
    fn processes_of(&self, account: &Account) -> u64 {
        let beside = if account.uid == 0 { PROCESSES_BESIDE_THE_WORLD } else { 1 };
        let of_user = self.user_processes.map(|most| most.saturating_add(beside));
        self.processes.min(of_user.unwrap_or(u64::MAX))
    }
}

pub struct Started {
    /// As the keeper sees it, and as the world does.
    pub pid: i32,
    pub pid_inside: i32,
    /// Of the terminal that it runs at.
    pub screen: Option<Fd>,
}

/// Descriptors: cgroup directory, stdout, stderr, and stdin where the command has one; else it reads `silence`. One that runs at a
/// terminal comes with the first alone.
pub fn spawn(
    message: &Message<'_>,
    descriptors: Vec<Fd>,
    limits: &Limits,
    silence: &Fd,
) -> Outcome<Started> {
    let fields = pack::parse_map(message.body)?;
    let program = Program::parse(&fields)?;
    let account = resolve(fields.optional_bytes("user")?)?;
    let size = terminal::size(&fields)?;
    let terminal = size.map(|size| terminal::open(size, &account)).transpose()?;
    let (cgroup, streams) = match (&descriptors[..], &terminal) {
        ([cgroup], Some(Terminal { line, .. })) => (cgroup, [line, line, line]),
        ([cgroup, output, errors, input @ ..], None) => {
            (cgroup, [input.first().unwrap_or(silence), output, errors])
        }
        _ => return Err(Failure::new(Code::Io, "descriptors were lost on the way")),
    };
    let working_directory = match fields.bytes("cwd")? {
        b"/" => None,
        path => Some(c_string(path)?),
    };
    let candidates = pointers(&program.candidates);
    let (arguments, environment) = (pointers(&program.arguments), pointers(&program.environment));
    let mut plan = Plan {
        candidates: candidates.as_ptr(),
        arguments: arguments.as_ptr(),
        environment: environment.as_ptr(),
        working_directory: working_directory
            .as_ref()
            .map_or(core::ptr::null(), |path| path.as_ptr()),
        streams: streams.map(Fd::raw),
        at_terminal: terminal.is_some(),
        account: &account,
        limits,
        processes: limits.processes_of(&account),
        pid: 0,
        stage: Stage::Born,
        errno: 0,
    };
    let pid = child::start(&mut plan, Some(cgroup)).map_err(no_process)?;
    if plan.errno == 0 {
        let screen = terminal.map(|terminal| terminal.screen);
        return Ok(Started { pid, pid_inside: plan.pid, screen });
    }
    process::wait_for(pid);
    Err(explain(plan.stage, plan.errno, &fields))
}

struct Program {
    /// Paths to try one after another.
    candidates: Vec<CString>,
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

impl Program {
    fn parse(fields: &Fields<'_>) -> Outcome<Program> {
        let names = fields.list("argv")?;
        let Some(name) = names.first().filter(|name| !name.is_empty()) else {
            return Err(Failure::invalid("argv is empty"));
        };
        let arguments = names.iter().map(|argument| c_string(argument)).collect::<Outcome<_>>()?;
        let mut environment = Vec::new();
        let mut search: &[u8] = b"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
        for pair in fields.array("env")? {
            let pair = pair.as_array().unwrap_or_default();
            let [Some(key), Some(value)] = [0, 1].map(|at| pair.get(at).and_then(|v| v.as_bytes()))
            else {
                return Err(Failure::invalid("env holds something else than pairs"));
            };
            if key == b"PATH" {
                search = value;
            }
            environment.push(c_string(&[key, value].join(&b'='))?);
        }
        Ok(Program { candidates: candidates(name, search)?, arguments, environment })
    }
}

fn candidates(name: &[u8], search: &[u8]) -> Outcome<Vec<CString>> {
    if name.contains(&b'/') {
        return Ok([c_string(name)?].into());
    }
    search
        .split(|byte| *byte == b':')
        .map(|place| if place.is_empty() { b"." } else { place })
        .map(|place| c_string(&[place, name].join(&b'/')))
        .collect()
}

fn c_string(bytes: &[u8]) -> Outcome<CString> {
    c_path(bytes).map_err(|_| Failure::invalid("a NUL byte in a name"))
}

fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([core::ptr::null()]).collect()
}

fn no_process(errno: i32) -> Failure {
    match errno {
        libc::EAGAIN => Failure {
            code: Code::Limit,
            message: "the world, or its user, has as many processes as it may have".into(),
            errno,
        },
        // The init of the world is dead.
        libc::ENOMEM => {
            Failure { code: Code::WorldNotOpen, message: "the world has ended".into(), errno }
        }
        _ => Failure::system(errno, "start of a process"),
    }
}
