//! Places in the agent's own root, which `image.sh` makes, and in the tmpfs that it mounts on /run.

use alloc::format;
use alloc::string::String;

pub const CGROUPS: &str = "/cg";
pub const RUN: &str = "/run";
/// Each keeper mounts a file system of its own there.
pub const STAGE: &str = "/stage";
pub const NEW_ROOT: &str = "/root";
/// The world's root below that.
pub const ROOT: &str = "/w";
pub const LAYERS: &str = "/img/";
/// What the host mounts where the sandbox may be copied: `machine-id` and `seed`, others in each copy.
pub const IDENTITY: &str = "/identity";
/// Below it the host mounts what of its own a sandbox is given.
pub const GIVEN: &str = "/given";
const DISKS: &str = "/disk";

/// The writable layer of a world: `u` holds its files, `w` is the overlay's own.
pub fn upper(world: &str) -> String {
    format!("{RUN}/{world}")
}

/// What the host mounts for a world whose writable layer is on its disk.
pub fn disk(world: &str) -> String {
    format!("{DISKS}/{world}")
}

pub fn upper_files(world: &str) -> String {
    format!("{RUN}/{world}/u")
}

/// Where all that a world lies over is seen as one.
pub fn below(world: &str) -> String {
    format!("{RUN}/{world}.below")
}

pub fn cgroup(world: &str) -> String {
    format!("{CGROUPS}/{world}")
}
