//! The few steps between birth and exec. The child shares the keeper's memory until exec, while the
//! keeper stands still: no step here allocates, and the plan is also where the child says how far it got.

use core::ffi::c_void;

use super::account::Account;
use super::spawn::Limits;
use crate::sys::fd::{self, Fd};
use crate::sys::process::{self, impose_limit, signals, spawn_borrowing_memory};
use crate::sys::{check, errno, terminal};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Born,
    Limits,
    User,
    Directory,
    Execution,
}

pub struct Plan<'a> {
    /// Each a list of C strings that ends in null.
    pub candidates: *const *const libc::c_char,
    pub arguments: *const *const libc::c_char,
    pub environment: *const *const libc::c_char,
    /// Null where it is that of the keeper already.
    pub working_directory: *const libc::c_char,
    /// Becomes 0, 1, 2; none of these lies in 0 … 2.
    pub streams: [i32; 3],
    /// They are one, and control its session.
    pub at_terminal: bool,
    pub account: &'a Account,
    pub limits: &'a Limits,
    /// RLIMIT_NPROC.
    pub processes: u64,
    /// As the world sees it.
    pub pid: i32,
    pub stage: Stage,
    pub errno: i32,
}

/// Gives the pid once the child runs its program, or has ended without: then `plan.errno` tells why
/// and `plan.stage` where. One that was killed on the way has neither, and ends like any other.
pub fn start(plan: &mut Plan<'_>, cgroup: Option<&Fd>) -> Result<i32, i32> {
    extern "C" fn run(plan: *mut c_void) -> ! {
        // The plan outlives the child's use of it: the keeper stands still until exec.
        let plan = unsafe { &mut *plan.cast::<Plan<'_>>() };
        if let Err(errno) = become_the_command(plan) {
            plan.errno = errno;
        }
        process::exit(127)
    }
    unsafe { spawn_borrowing_memory(cgroup, run, (plan as *mut Plan<'_>).cast()) }
}

fn become_the_command(plan: &mut Plan<'_>) -> Result<(), i32> {
    plan.pid = unsafe { libc::getpid() };
    unsafe { libc::setsid() };
    for (to, from) in plan.streams.iter().enumerate() {
        check(unsafe { libc::dup2(*from, to as i32) })?;
    }
    if plan.at_terminal {
        terminal::be_controlled_by(0)?;
    }
    plan.stage = Stage::Limits;
    impose_limit(libc::RLIMIT_NPROC, plan.processes)?;
    impose_limit(libc::RLIMIT_NOFILE, plan.limits.open_files)?;
    impose_limit(libc::RLIMIT_CORE, 0)?;
    if let Some(bytes) = plan.limits.file_bytes {
        impose_limit(libc::RLIMIT_FSIZE, bytes)?;
    }
    plan.stage = Stage::User;
    take_account(plan.account)?;
    plan.stage = Stage::Directory;
    if !plan.working_directory.is_null() {
        check(unsafe { libc::chdir(plan.working_directory) })?;
    }
    // What is ignored stays so; handlers end with exec.
    signals::reset(libc::SIGPIPE);
    signals::unblock_all();
    fd::close_all_except(3, &[]);
    plan.stage = Stage::Execution;
    Err(execute(plan))
}

fn take_account(account: &Account) -> Result<(), i32> {
    // The keeper has none.
    if !account.groups.is_empty() {
        let groups = account.groups.as_ptr();
        check(unsafe { libc::syscall(libc::SYS_setgroups, account.groups.len(), groups) })?;
    }
    if account.gid != 0 {
        check(unsafe {
            libc::syscall(libc::SYS_setresgid, account.gid, account.gid, account.gid)
        })?;
    }
    if account.uid != 0 {
        check(unsafe {
            libc::syscall(libc::SYS_setresuid, account.uid, account.uid, account.uid)
        })?;
    }
    Ok(())
}

/// Returns only when none of the candidates can be run; the most telling errno wins.
fn execute(plan: &Plan<'_>) -> i32 {
    let mut told = libc::ENOENT;
    let mut candidate = plan.candidates;
    unsafe {
        while !(*candidate).is_null() {
            libc::execve(*candidate, plan.arguments, plan.environment);
            match errno() {
                libc::ENOENT | libc::ENOTDIR => {}
                libc::ENOEXEC => return run_by_shell(plan, *candidate),
                errno => told = errno,
            }
            candidate = candidate.add(1);
        }
    }
    told
}

/// A script without a first line that names its interpreter, as `execvp` does it.
unsafe fn run_by_shell(plan: &Plan<'_>, script: *const libc::c_char) -> i32 {
    const ARGUMENTS_MAX: usize = 256;
    let shell = c"/bin/sh".as_ptr();
    let mut arguments = [core::ptr::null(); ARGUMENTS_MAX + 1];
    (arguments[0], arguments[1]) = (shell, script);
    for (at, argument) in arguments.iter_mut().enumerate().take(ARGUMENTS_MAX).skip(2) {
        *argument = unsafe { *plan.arguments.add(at - 1) };
        if argument.is_null() {
            break;
        }
    }
    unsafe { libc::execve(shell, arguments.as_ptr(), plan.environment) };
    libc::ENOEXEC
}
