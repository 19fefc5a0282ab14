//! Takes a dead sandbox's first process out of the process table.
//!
//! Not every machine's init does that: in a container the daemon itself is often PID 1, and Node.js reaps only its own.

use crate::fail::Fail;
use crate::hold;
use crate::request::Request;
use serde_json::{Value, json};

/// `{ pid }` → `{ reaped }`: false where it is not a child of this helper. The caller has seen it die.
pub fn reap(request: &Request) -> Result<Value, Fail> {
    let pid = request.number("pid")?;
    hold::forget(pid);
    let reaped = pid > 0 && unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) } == pid;
    Ok(json!({ "reaped": reaped }))
}
