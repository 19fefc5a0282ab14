use alloc::format;

use super::{Exec, State};
use crate::agent::Agent;
use crate::failure::{Code, Failure, Outcome};
use crate::pack::{self, Fields};
use crate::sys::fd::{read_file, write_file};
use crate::sys::process;

impl Agent {
    pub fn request_kill(&mut self, id: u32, fields: &Fields<'_>) -> Outcome<()> {
        let serial = self.execs.find(fields.bytes("exec")?)?;
        let signal = match fields.number("signal")? {
            signal @ 1..=64 => signal as i32,
            _ => return Err(Failure::invalid("signal is not 1 to 64")),
        };
        let Some(exec) = self.execs.get(serial) else {
            return Ok(());
        };
        let processes = exec.processes();
        if signal == libc::SIGKILL {
            exec.killed |= matches!(exec.state, State::Starting | State::Running);
            self.kill_all_of(serial);
        } else {
            signal_all(&exec.cgroup, signal);
        }
        self.succeed(id, pack::map().number("processes", processes));
        Ok(())
    }

    pub fn request_forget(&mut self, id: u32, fields: &Fields<'_>) -> Outcome<()> {
        let serial = self.execs.find(fields.bytes("exec")?)?;
        if self.execs.get(serial).is_some_and(|exec| exec.running()) {
            return Err(Failure::new(Code::Limit, "the command still runs"));
        }
        if let Some(exec) = self.drop_exec(serial)
            && let Some(reader) = exec.reader
        {
            self.fail(reader, &Failure::new(Code::ExecUnknown, "it was forgotten"));
        }
        self.succeed(id, pack::map());
        Ok(())
    }

    /// Everything the command started, also what left its session. Needs no new process.
    pub(super) fn kill_all_of(&mut self, serial: u32) {
        if let Some(exec) = self.execs.get(serial) {
            let _ = write_file(format!("{}/cgroup.kill", exec.cgroup).as_bytes(), b"1");
        }
    }
}

impl Exec {
    /// The world sees a command's process before it runs its program, and may stop it. The keeper
    /// stands still with it, so it isn't left stopped.
    pub(super) fn go_on(&self) {
        signal_all(&self.cgroup, libc::SIGCONT);
    }
}

fn signal_all(cgroup: &str, signal: i32) {
    let file = format!("{cgroup}/cgroup.procs");
    let procs = read_file(file.as_bytes(), 1 << 16).unwrap_or_default();
    let pids = procs.split(|byte| *byte == b'\n');
    for pid in pids.filter_map(|pid| core::str::from_utf8(pid).ok()?.parse::<i32>().ok()) {
        if pid > 0 {
            let _ = process::kill(pid, signal);
        }
    }
}
