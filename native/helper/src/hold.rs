//! Holds a whole sandbox up and lets it go on: while it is held no task of it runs, its agent included, whose time without a daemon
//! doesn't run out then either. So what is held when the helper ends is ended with it: nobody else could let it go. What the daemon has
//! asked to let go goes on also where the daemon is gone meanwhile.

use crate::fail::Fail;
use crate::request::Request;
use crate::urpc::Urpc;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// First processes of sandboxes that are held.
static HELD: Mutex<BTreeSet<libc::pid_t>> = Mutex::new(BTreeSet::new());
/// How many are being let go.
static LETTING_GO: AtomicUsize = AtomicUsize::new(0);
const LOOK: Duration = Duration::from_millis(5);

/// `{ controlSocket, sentryPid, deadlineMs }` → `{ elapsedUs }`, when every task stands still.
pub fn hold(request: &Request) -> Result<Value, Fail> {
    call(request, "containerManager.Pause")
}

/// What is to be held counts as held as soon as that is read: should the input end behind it, it is ended with the rest.
pub fn note(request: &Request) {
    if let (Ok("hold"), Ok(sentry)) = (request.text("op"), request.number("sentryPid")) {
        held().insert(sentry);
    }
}

/// The same request; what was held goes on.
pub fn let_go(request: &Request) -> Result<Value, Fail> {
    call(request, "containerManager.Resume")
}

/// A sandbox is being let go: the helper doesn't end before that is over.
pub struct LettingGo;

impl LettingGo {
    /// Taken in as soon as it is read, before whatever comes after it.
    pub fn of(request: &Request) -> Option<LettingGo> {
        if request.text("op").ok()? != "letGo" {
            return None;
        }
        LETTING_GO.fetch_add(1, Ordering::SeqCst);
        let letting = LettingGo;
        forget(request.number("sentryPid").ok()?);
        Some(letting)
    }
}

impl Drop for LettingGo {
    fn drop(&mut self) {
        LETTING_GO.fetch_sub(1, Ordering::SeqCst);
    }
}

/// It is dead: its number may be another process's soon.
pub fn forget(sentry: libc::pid_t) {
    held().remove(&sentry);
}

/// The daemon is gone.
pub fn end_all() {
    for sentry in held().iter() {
        unsafe { libc::kill(*sentry, libc::SIGKILL) };
    }
    // Each has a deadline.
    while LETTING_GO.load(Ordering::SeqCst) > 0 {
        std::thread::sleep(LOOK);
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
