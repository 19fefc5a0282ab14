use core::ffi::c_void;

use super::fd::Fd;
use super::{check, errno};

/// The C library's constant is too narrow for it.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

pub fn fork() -> Result<i32, i32> {
    check(unsafe { libc::fork() }).map(|pid| pid as i32)
}

pub fn exit(status: i32) -> ! {
    unsafe { libc::_exit(status) }
}

pub fn kill(pid: i32, signal: i32) -> Result<(), i32> {
    check(unsafe { libc::kill(pid, signal) }).map(|_| ())
}

/// An ended child that nobody waited for yet: its pid and wait status.
pub fn reap() -> Option<(i32, i32)> {
    let mut status = 0;
    let pid = unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) };
    (pid > 0).then_some((pid, status))
}

/// Waits for one child that is certain to end soon.
pub fn wait_for(pid: i32) -> i32 {
    let mut status = 0;
    while unsafe { libc::waitpid(pid, &mut status, 0) } < 0 && errno() == libc::EINTR {}
    status
}

pub fn unshare(flags: i32) -> Result<(), i32> {
    check(unsafe { libc::unshare(flags) }).map(|_| ())
}

/// From now on children are born in the pid namespace behind `namespace`.
pub fn bear_children_in(namespace: &Fd) -> Result<(), i32> {
    check(unsafe { libc::setns(namespace.raw(), libc::CLONE_NEWPID) }).map(|_| ())
}

pub fn forbid_new_privileges() {
    unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
}

pub fn die_with_parent() {
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) };
}

/// Keeps others from looking into this process, whoever they are.
pub fn hide_memory() {
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
}

pub fn set_host_name(name: &[u8]) -> Result<(), i32> {
    check(unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) }).map(|_| ())
}

/// Those that this process may run on.
pub struct Processors(libc::cpu_set_t);

impl Processors {
    pub fn known() -> Processors {
        unsafe {
            let mut known: libc::cpu_set_t = core::mem::zeroed();
            libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut known);
            Processors(known)
        }
    }

    /// Runs this process and its children on the first `count`.
    pub fn use_first(&self, count: usize) -> Result<(), i32> {
        let usable =
            (0..libc::CPU_SETSIZE as usize).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &self.0) });
        if usable.clone().count() <= count {
            return Ok(());
        }
        unsafe {
            let mut set: libc::cpu_set_t = core::mem::zeroed();
            for cpu in usable.take(count.max(1)) {
                libc::CPU_SET(cpu, &mut set);
            }
            check(libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)).map(|_| ())
        }
    }
}

/// To what this process may be limited at most.
pub fn highest_limit(resource: libc::__rlimit_resource_t) -> u64 {
    let mut now = libc::rlimit { rlim_cur: 0, rlim_max: u64::MAX };
    unsafe { libc::getrlimit(resource, &mut now) };
    now.rlim_max
}

pub fn impose_limit(resource: libc::__rlimit_resource_t, value: u64) -> Result<(), i32> {
    let limit = libc::rlimit { rlim_cur: value, rlim_max: value };
    check(unsafe { libc::setrlimit(resource, &limit) }).map(|_| ())
}

pub fn random(bytes: &mut [u8]) {
    unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
}

pub mod signals {
    use super::errno;

    pub fn ignore(signal: i32) {
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }

    pub fn reset(signal: i32) {
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }

    /// Makes the end of a child interrupt `wait_readable`, and nothing else.
    pub fn interrupt_waits_on_children() {
        extern "C" fn nothing(_: i32) {}
        unsafe {
            let mut action: libc::sigaction = core::mem::zeroed();
            action.sa_sigaction = nothing as *const () as usize;
            libc::sigaction(libc::SIGCHLD, &action, core::ptr::null_mut());
            let mut blocked = core::mem::zeroed();
            libc::sigemptyset(&mut blocked);
            libc::sigaddset(&mut blocked, libc::SIGCHLD);
            libc::sigprocmask(libc::SIG_SETMASK, &blocked, core::ptr::null_mut());
        }
    }

    /// Those too that the C library keeps for itself.
    pub fn block_all() {
        let all = u64::MAX;
        let none = core::ptr::null_mut::<u64>();
        let (call, how) = (libc::SYS_rt_sigprocmask, libc::SIG_SETMASK);
        unsafe { libc::syscall(call, how, &all, none, size_of::<u64>()) };
    }

    pub fn unblock_all() {
        unsafe {
            let mut none = core::mem::zeroed();
            libc::sigemptyset(&mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &none, core::ptr::null_mut());
        }
    }

    /// Until the descriptor is readable (true) or a child ended (false). `None`: for ever.
    pub fn wait_readable(fd: i32, writable: bool, timeout_ms: Option<u64>) -> bool {
        let events = libc::POLLIN | if writable { libc::POLLOUT } else { 0 };
        let mut poll = libc::pollfd { fd, events, revents: 0 };
        unsafe {
            let mut none = core::mem::zeroed();
            libc::sigemptyset(&mut none);
            let time = timeout_ms.map(|ms| libc::timespec {
                tv_sec: (ms / 1000) as i64,
                tv_nsec: (ms % 1000 * 1_000_000) as i64,
            });
            let time = time.as_ref().map_or(core::ptr::null(), |time| time as *const _);
            libc::ppoll(&mut poll, 1, time, &none) > 0 || errno() != libc::EINTR
        }
    }
}

/// Starts a child that shares this process's memory and holds it up until the child has called
/// exec or ended: nothing is copied. With a cgroup the child is born in it, so that it counts
/// against its limits from the first instant; a full one is EAGAIN.
///
/// # Safety
/// `child` may only call functions that are safe after fork, and must not return.
pub unsafe fn spawn_borrowing_memory(
    cgroup: Option<&Fd>,
    child: extern "C" fn(*mut c_void) -> !,
    argument: *mut c_void,
) -> Result<i32, i32> {
    let mut arguments: libc::clone_args = unsafe { core::mem::zeroed() };
    arguments.flags = (libc::CLONE_VM | libc::CLONE_VFORK) as u64;
    arguments.exit_signal = libc::SIGCHLD as u64;
    if let Some(cgroup) = cgroup {
        arguments.flags |= CLONE_INTO_CGROUP;
        arguments.cgroup = cgroup.raw() as u64;
    }
    let result = unsafe { clone3(&arguments, child, argument) };
    if result < 0 { Err(-result as i32) } else { Ok(result as i32) }
}

/// The C library has no call that lets a child go on on the parent's stack; the parent stands
/// still meanwhile, and the child's frames lie below its own.
#[cfg(target_arch = "x86_64")]
unsafe fn clone3(
    arguments: &libc::clone_args,
    child: extern "C" fn(*mut c_void) -> !,
    argument: *mut c_void,
) -> isize {
    let result: isize;
    unsafe {
        core::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "and rsp, -16",
            "mov rdi, r12",
            "call r13",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone3 as isize => result,
            in("rdi") arguments as *const libc::clone_args,
            in("rsi") size_of::<libc::clone_args>(),
            in("r12") argument,
            in("r13") child,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    result
}

#[cfg(target_arch = "aarch64")]
unsafe fn clone3(
    arguments: &libc::clone_args,
    child: extern "C" fn(*mut c_void) -> !,
    argument: *mut c_void,
) -> isize {
    let result: isize;
    unsafe {
        core::arch::asm!(
            "svc 0",
            "cbnz x0, 2f",
            "mov x0, x20",
            "blr x21",
            "brk 1",
            "2:",
            inlateout("x0") arguments as *const libc::clone_args as isize => result,
            in("x1") size_of::<libc::clone_args>(),
            in("x8") libc::SYS_clone3,
            in("x20") argument,
            in("x21") child,
            lateout("x30") _,
        );
    }
    result
}
