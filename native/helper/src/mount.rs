//! Mounts an EROFS image into a running sandbox.

use crate::fail::Fail;
use crate::request::Request;
use crate::urpc::Urpc;
use serde_json::{Value, json};
use std::fs::File;
use std::os::fd::AsFd;
use std::time::Instant;

/// `{ controlSocket, container, source, destination, deadlineMs }` → `{ elapsedUs }`.
pub fn mount(request: &Request) -> Result<Value, Fail> {
    let begin = Instant::now();
    let source = request.text("source")?;
    let image =
        File::open(source).map_err(|error| Fail::new("image", format!("{source}: {error}")))?;
    let argument = json!({
        "ContainerID": request.text("container")?,
        "Source": source,
        "Destination": request.text("destination")?,
        "FsType": "erofs",
    });
    Urpc::connect(request.text("controlSocket")?, begin + request.deadline()?)?.call(
        "containerManager.Mount",
        argument,
        Some(image.as_fd()),
    )?;
    Ok(json!({ "elapsedUs": begin.elapsed().as_micros() as u64 }))
}
