//! Takes dead processes of sandboxes out of the process table.
//!
//! Not every machine's init does that: in a container the daemon itself is often PID 1, and Node.js reaps only its own. What a
//! launch leaves behind when it has ended becomes the helper's child: the sandbox's first process, and a gofer where it has one.

use crate::fail::Fail;
use crate::hold;
use crate::request::Request;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Children whose end a thread waits for by itself.
static AWAITED: Mutex<BTreeSet<libc::pid_t>> = Mutex::new(BTreeSet::new());

/// `{ pid }` → `{ reaped }`: false where it is not a child of this helper. The caller has seen it die; 0 stands for none. Whatever else
/// has died by now goes too.
pub fn reap(request: &Request) -> Result<Value, Fail> {
    let pid = request.number("pid")?;
    hold::forget(pid);
    let reaped = pid > 0 && unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) } == pid;
    reap_the_dead();
    Ok(json!({ "reaped": reaped }))
}

/// A child that nobody else reaps until this is dropped.
pub struct Awaited(pub Child);

impl Awaited {
    pub fn spawn(command: &mut Command) -> std::io::Result<Awaited> {
        // Held across: it may be dead before it is known.
        let mut pids = awaited();
        let child = command.spawn()?;
        pids.insert(child.id() as libc::pid_t);
        Ok(Awaited(child))
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        awaited().remove(&(self.0.id() as libc::pid_t));
    }
}

fn reap_the_dead() {
    let awaited = awaited();
    for pid in children() {
        if !awaited.contains(&pid) {
            unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG) };
        }
    }
}

/// Those of all threads; none where the kernel keeps no lists of them.
fn children() -> Vec<libc::pid_t> {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().flat_map(str::parse).collect::<Vec<_>>())
        .collect()
}

fn awaited() -> MutexGuard<'static, BTreeSet<libc::pid_t>> {
    AWAITED.lock().unwrap_or_else(PoisonError::into_inner)
}
