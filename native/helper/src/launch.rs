//! Starts one sandbox: `runsc create` in its cgroup and session, then the network and the root container over the
//! control socket, which saves a second start of runsc. Or `runsc restore`, which does all of it.
//!
//! The sandbox gets exactly three descriptors: its ends of the FIFOs, and a log file. The launching process enters the
//! cgroup before it becomes runsc, so that all it starts is accounted and can be found there.

use crate::fail::Fail;
use crate::fifos::{SandboxEnds, open_sandbox_ends};
use crate::reap::Awaited;
use crate::request::{Request, c_path};
use crate::urpc::Urpc;
use serde_json::{Value, json};
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

const LOG_TAIL_BYTES: i64 = 4096;

/// `{ in, out, pipeBytes, stderr, log, cgroupProcs: [path], argv: [runsc, …], pidFile, controlSocket, container, start, deadlineMs }`
/// → `{ sentryPid, pipeBytes, createUs, startUs }`. On failure the caller ends what may be left in the cgroup.
pub fn launch(request: &Request) -> Result<Value, Fail> {
    let begin = Instant::now();
    let deadline = begin + request.deadline()?;
    let ends = open_sandbox_ends(
        &request.path("in")?,
        &request.path("out")?,
        request.number("pipeBytes")?,
    )?;
    let pipe_bytes = ends.pipe_bytes;
    create(request, ends, deadline).map_err(|fail| fail.with_log(log_tail(request)))?;
    let created = Instant::now();
    let pid = read_pid(request.text("pidFile")?)?;
    prefer_for_oom(pid).map_err(|error| Fail::io("oom", error))?;
    if request.flag("start")? {
        start(request, deadline).map_err(|fail| fail.with_log(log_tail(request)))?;
    }
    Ok(json!({
        "sentryPid": pid,
        "pipeBytes": pipe_bytes,
        "createUs": micros(created - begin),
        "startUs": micros(created.elapsed()),
    }))
}

fn create(request: &Request, ends: SandboxEnds, deadline: Instant) -> Result<(), Fail> {
    let argv = request.texts("argv")?;
    let (program, arguments) =
        argv.split_first().ok_or_else(|| Fail::new("request", "argv is empty"))?;
    let cgroup_procs: Vec<CString> =
        request.texts("cgroupProcs")?.into_iter().map(c_path).collect::<Result<_, _>>()?;
    let stderr = OpenOptions::new()
        .append(true)
        .create(true)
        .open(request.text("stderr")?)
        .map_err(|error| Fail::io("log", error))?;
    let mut command = Command::new(program);
    command.args(arguments).env_clear().current_dir("/");
    command.stdin(ends.input).stdout(ends.output).stderr(stderr);
    unsafe { command.pre_exec(move || enter(&cgroup_procs)) };
    let mut child = Awaited::spawn(&mut command)
        .map_err(|error| Fail::new("spawn", format!("{program}: {error}")))?;
    // Command keeps copies of the ends until it is dropped; the end of the sandbox must be the end of the pipe.
    drop(command);
    wait(&mut child.0, deadline)
}

/// Runs between fork and exec: system calls only. `prefer_for_oom` says why the score.
fn enter(cgroup_procs: &[CString]) -> std::io::Result<()> {
    unsafe {
        for path in cgroup_procs {
            write_once(path.as_ptr(), b"0")?;
        }
        let _ = write_once(c"/proc/self/oom_score_adj".as_ptr(), b"-900");
        if libc::setsid() < 0 {
            return Err(std::io::Error::last_os_error());
        }
        // Nothing that the helper inherited reaches runsc.
        libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
    }
    Ok(())
}

unsafe fn write_once(path: *const libc::c_char, bytes: &[u8]) -> std::io::Result<()> {
    let fd = unsafe { libc::open(path, libc::O_WRONLY | libc::O_CLOEXEC) };
    if fd < 0 {
        return Err(std::io::Error::last_os_error());
    }
    let written = unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
    let error = std::io::Error::last_os_error();
    unsafe { libc::close(fd) };
    if written < 0 { Err(error) } else { Ok(()) }
}

fn wait(child: &mut Child, deadline: Instant) -> Result<(), Fail> {
    let pid = child.id() as libc::pid_t;
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) } as i32;
    if fd < 0 {
        return Err(Fail::errno("create", "pidfd_open"));
    }
    let pidfd = unsafe { OwnedFd::from_raw_fd(fd) };
    if !ends_in_time(&pidfd, deadline) {
        unsafe { libc::kill(-pid, libc::SIGKILL) };
        let _ = child.wait();
        return Err(Fail::new("create", "runsc did not end in time"));
    }
    match child.wait() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Fail::new("create", format!("runsc ended with {status}"))),
        Err(error) => Err(Fail::io("create", error)),
    }
}

fn ends_in_time(pidfd: &OwnedFd, deadline: Instant) -> bool {
    let mut poll = libc::pollfd { fd: pidfd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let millis = left.as_millis().min(i32::MAX as u128) as i32;
        match unsafe { libc::poll(&mut poll, 1, millis) } {
            1.. => return true,
            0 if left < Duration::from_millis(1) => return false,
            _ => continue,
        }
    }
}

fn read_pid(path: &str) -> Result<u32, Fail> {
    let text = std::fs::read_to_string(path).map_err(|error| Fail::io("pid", error))?;
    text.trim().parse().map_err(|_| Fail::new("pid", format!("{text:?} is no pid")))
}

/// Out of memory, in its cgroup or on the whole machine, a sandbox dies as a whole and before the daemon: the kernel prefers its
/// sentry, with which all others end. Those inherited the opposite from `enter`, because half a sandbox is of no use.
fn prefer_for_oom(sentry: u32) -> std::io::Result<()> {
    std::fs::write(format!("/proc/{sentry}/oom_score_adj"), "1000")
}

/// What `runsc start` does: a loopback device, then the root container.
fn start(request: &Request, deadline: Instant) -> Result<(), Fail> {
    let mut control = Urpc::connect(request.text("controlSocket")?, deadline)?;
    control.call("containerManager.SetNetworkArgs", loopback(), None)?;
    control.call("containerManager.StartRoot", json!(request.text("container")?), None)?;
    Ok(())
}

/// Go's JSON: addresses are text, masks are base64.
fn loopback() -> Value {
    json!({ "LoopbackLinks": [{
        "Name": "lo",
        "Addresses": [
            { "Address": "127.0.0.1", "PrefixLen": 8 },
            { "Address": "::1", "PrefixLen": 128 },
        ],
        "Routes": [
            { "Destination": { "IP": "127.0.0.0", "Mask": "/wAAAA==" } },
            { "Destination": { "IP": "::1", "Mask": "/////////////////////w==" } },
        ],
    }] })
}

fn log_tail(request: &Request) -> String {
    let paths = [request.text("log"), request.text("stderr")];
    paths.into_iter().flatten().map(tail).collect::<Vec<_>>().join("")
}

fn tail(path: &str) -> String {
    let mut bytes = Vec::new();
    if let Ok(mut file) = File::open(path) {
        // A file shorter than the tail is read from its start.
        let _ = file.seek(SeekFrom::End(-LOG_TAIL_BYTES));
        let _ = file.take(LOG_TAIL_BYTES as u64).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn micros(duration: Duration) -> u64 {
    duration.as_micros() as u64
}
