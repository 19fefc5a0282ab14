//! What a world needs and no image has part in, done ahead of time. It takes most of the time of a
//! new world, so that opening one is short.

use alloc::format;

use super::jobs::Jobs;
use super::machine::Machine;
use super::spawn::Ceilings;
use crate::failure::{Failure, Outcome};
use crate::sys::capabilities;
use crate::sys::check;
use crate::sys::fd::{self, Fd, open};
use crate::sys::mount::{self, NO_SUID_DEV_EXEC, mount};
use crate::sys::process::{self, Processors, signals};
use crate::worlds::paths::{NEW_ROOT, ROOT, STAGE};

/// In the `/dev` of each world; empty unless the sandbox may be copied.
pub const SEED: &str = "sandlot-seed";

const NAMESPACES: i32 =
    libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWUTS | libc::CLONE_NEWIPC;

/// What is made ahead, and used when the world opens and when its commands start.
pub struct Prepared {
    pub init: i32,
    /// The means for long work outside of the world's sight.
    pub jobs: Jobs,
    pub ceilings: Ceilings,
    pub processors: Processors,
    /// What commands without an input read.
    pub silence: Fd,
    /// What the world will be told of its machine.
    pub machine: Machine,
}

pub fn prepare() -> Outcome<Prepared> {
    unsafe { libc::umask(0o022) };
    let ours = namespace("self")?;
    process::unshare(NAMESPACES).map_err(|errno| Failure::system(errno, "unshare"))?;
    mount::enslave(b"/").map_err(|errno| Failure::system(errno, "enslave /"))?;
    stage()?;
    let init = start_init()?;
    let jobs = Jobs::new(ours, namespace(&format!("{init}"))?);
    let machine = Machine::prepare()?;
    stage_root()?;
    drop_groups()?;
    process::forbid_new_privileges();
    let place = format!("{STAGE}/dev/null");
    Ok(Prepared {
        init,
        jobs,
        ceilings: Ceilings::known(),
        processors: Processors::known(),
        silence: open(place.as_bytes(), libc::O_RDONLY, 0)
            .map_err(|errno| Failure::system(errno, place))?,
        machine,
    })
}

fn namespace(process: &str) -> Outcome<Fd> {
    let path = format!("/proc/{process}/ns/pid");
    open(path.as_bytes(), libc::O_RDONLY, 0).map_err(|errno| Failure::system(errno, path))
}

/// What will be moved into the root, on a file system that only this namespace has.
fn stage() -> Outcome<()> {
    tmpfs(STAGE, "size=1m,nr_inodes=64,mode=755", 0)?;
    for name in ["proc", "sys", "dev"] {
        directory(&format!("{STAGE}/{name}"), 0o755)?;
    }
    let system = format!("{STAGE}/sys");
    mount(b"sysfs", system.as_bytes(), "sysfs", libc::MS_RDONLY | NO_SUID_DEV_EXEC, b"")
        .map_err(|errno| Failure::system(errno, system))?;
    devices()
}

/// One level above the world's root stays a directory that nobody needs: a process that is chrooted can't make a user
/// namespace, and so can't mount.
fn stage_root() -> Outcome<()> {
    tmpfs(NEW_ROOT, "size=16k,nr_inodes=16,mode=755", NO_SUID_DEV_EXEC)?;
    directory(&format!("{NEW_ROOT}{ROOT}"), 0o755)
}

/// So that none of the commands has any that it wasn't given.
fn drop_groups() -> Outcome<()> {
    let none = core::ptr::null::<u32>();
    check(unsafe { libc::syscall(libc::SYS_setgroups, 0, none) })
        .map(|_| ())
        .map_err(|errno| Failure::system(errno, "groups"))
}

/// Each world has its own: nodes of the agent's are shared, writable and too many.
fn devices() -> Outcome<()> {
    let place = format!("{STAGE}/dev");
    tmpfs(&place, "size=64k,nr_inodes=64,mode=755", libc::MS_NOSUID)?;
    let nodes = [
        ("null", 1, 3),
        ("zero", 1, 5),
        ("full", 1, 7),
        ("random", 1, 8),
        ("urandom", 1, 9),
        ("tty", 5, 0),
    ];
    for (name, major, minor) in nodes {
        let path = format!("{place}/{name}");
        let c_path = fd::c_path(path.as_bytes()).unwrap_or_default();
        let device = libc::makedev(major, minor);
        unsafe {
            if libc::mknod(c_path.as_ptr(), libc::S_IFCHR | 0o666, device) != 0 {
                return Err(Failure::system(crate::sys::errno(), path));
            }
            libc::chmod(c_path.as_ptr(), 0o666);
        }
    }
    let links = [
        ("/proc/self/fd", "fd"),
        ("/proc/self/fd/0", "stdin"),
        ("/proc/self/fd/1", "stdout"),
        ("/proc/self/fd/2", "stderr"),
        ("pts/ptmx", "ptmx"),
    ];
    for (target, name) in links {
        let path = format!("{place}/{name}");
        let (target, c_path) = (fd::c_path(target.as_bytes()), fd::c_path(path.as_bytes()));
        let (target, c_path) = (target.unwrap_or_default(), c_path.unwrap_or_default());
        if unsafe { libc::symlink(target.as_ptr(), c_path.as_ptr()) } != 0 {
            return Err(Failure::system(crate::sys::errno(), path));
        }
    }
    // What it covers is told once the world has a root.
    fd::open(format!("{place}/{SEED}").as_bytes(), libc::O_CREAT | libc::O_WRONLY, 0o444)
        .map_err(|errno| Failure::system(errno, SEED))?;
    directory(&format!("{place}/shm"), 0o777)?;
    let terminals = format!("{place}/pts");
    directory(&terminals, 0o755)?;
    mount(
        b"devpts",
        terminals.as_bytes(),
        "devpts",
        libc::MS_NOSUID | libc::MS_NOEXEC,
        // Without a mode: the runtime takes it for that of the directory, which others than root couldn't enter.
        b"newinstance,ptmxmode=0666",
    )
    .map_err(|errno| Failure::system(errno, terminals))?;
    mount::make_read_only(place.as_bytes(), libc::MS_NOSUID)
        .map_err(|errno| Failure::system(errno, place))
}

/// PID 1 of the world. It mounts /proc itself: mounted by anyone outside of the new pid namespace it
/// would show the agent's processes. It has no capability and no descriptor, and no signal but KILL
/// reaches it; children that are left to it vanish when they end, as SIGCHLD is ignored. It never
/// calls exec, so what the bounding set leaves to commands is nothing to it.
fn start_init() -> Outcome<i32> {
    let (told, tell) = fd::pipe(0).map_err(|errno| Failure::system(errno, "pipe"))?;
    let pid = process::fork().map_err(|errno| Failure::system(errno, "fork of init"))?;
    if pid == 0 {
        let place = format!("{STAGE}/proc");
        let mounted = mount(b"proc", place.as_bytes(), "proc", NO_SUID_DEV_EXEC, b"");
        signals::ignore(libc::SIGCHLD);
        signals::block_all();
        process::hide_memory();
        let _ = capabilities::set(capabilities::NONE, capabilities::NONE);
        let _ = tell.write(&[mounted.err().unwrap_or(0) as u8]);
        fd::close_all_except(0, &[]);
        loop {
            unsafe { libc::pause() };
        }
    }
    drop(tell);
    let mut answer = [0xff];
    match told.read(&mut answer) {
        Ok(1) if answer[0] == 0 => Ok(pid),
        Ok(1) => Err(Failure::system(answer[0].into(), "mount of /proc")),
        _ => Err(Failure::system(libc::EIO, "init of the world")),
    }
}

pub fn tmpfs(place: &str, options: &str, flags: u64) -> Outcome<()> {
    mount(b"tmpfs", place.as_bytes(), "tmpfs", flags, options.as_bytes())
        .map_err(|errno| Failure::system(errno, format!("tmpfs on {place}")))
}

pub fn directory(path: &str, mode: u32) -> Outcome<()> {
    let c_path = fd::c_path(path.as_bytes()).unwrap_or_default();
    if unsafe { libc::mkdir(c_path.as_ptr(), mode) } == 0 || crate::sys::errno() == libc::EEXIST {
        return Ok(());
    }
    Err(Failure::system(crate::sys::errno(), format!("mkdir {path}")))
}
