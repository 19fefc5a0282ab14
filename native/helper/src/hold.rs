//! Holds a whole sandbox up and lets it go on: while it is held no task of it runs, its agent included, whose time without a daemon
//! doesn't run out then either. So what is held when the helper ends is ended with it: nobody else could let it go.

use crate::fail::Fail;
use crate::request::Request;
use crate::urpc::Urpc;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// First processes of sandboxes that are held.
static HELD: Mutex<BTreeSet<libc::pid_t>> = Mutex::new(BTreeSet::new());

/// `{ controlSocket, sentryPid, deadlineMs }` → `{ elapsedUs }`, when every task stands still.
pub fn hold(request: &Request) -> Result<Value, Fail> {
    held().insert(request.number("sentryPid")?);
    call(request, "containerManager.Pause")
}

/// The same request; what was held goes on.
pub fn let_go(request: &Request) -> Result<Value, Fail> {
    forget(request.number("sentryPid")?);
    call(request, "containerManager.Resume")
}

/// It is dead: its number may be another process's soon.
pub fn forget(sentry: libc::pid_t) {
    held().remove(&sentry);
}

pub fn end_all() {
    for sentry in held().iter() {
        unsafe { libc::kill(*sentry, libc::SIGKILL) };
    }
}

fn call(request: &Request, method: &str) -> Result<Value, Fail> {
    let begin = Instant::now();
    let deadline = begin + request.deadline()?;
    Urpc::connect(request.text("controlSocket")?, deadline)?.call(method, json!({}), None)?;
    Ok(json!({ "elapsedUs": begin.elapsed().as_micros() as u64 }))
}

fn held() -> MutexGuard<'static, BTreeSet<libc::pid_t>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}
