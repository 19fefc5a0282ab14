//! File requests, as the keeper does them: in the world's root, as its root user. A symbolic link
//! means what it means to the world, and the keeper's own root is the world's, so none leads out.

pub mod change;
mod difference;
mod list;
mod made_up;
mod place;
mod processes;
mod read;
mod remove;
mod tar;
mod tar_in;
mod tar_out;
mod write;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::failure::{Code, Failure, Outcome};
use crate::limits::PATH_BYTES_MAX;
use crate::pack::{self, Fields, Map};
use crate::sys::fd::Fd;
use crate::sys::stat::Stat;

/// What becomes of a request.
pub enum Answer<'a> {
    /// Its result; the descriptor is the open file whose bytes the agent moves.
    Done(Map, Option<Fd>),
    /// As above with a pipe, which the job fills.
    Piped(Map, Fd, Job<'a>),
    /// The job says the result.
    Later(Job<'a>),
}

/// Work that may take long, done in a process of its own.
pub enum Job<'a> {
    Copy { from: Fd, to: Fd },
    List { path: &'a [u8], to: Fd },
    Remove { path: &'a [u8], force: bool },
    TarOut { path: &'a [u8], to: Fd },
    TarIn { request: tar_in::Request<'a>, from: Fd },
    Difference(difference::Request),
    Processes,
}

/// `descriptors`: the end of a pipe that the agent sent along, for requests that move bytes by it, and
/// directories of its own.
pub fn answer<'a>(fields: &Fields<'a>, mut descriptors: Vec<Fd>) -> Outcome<Answer<'a>> {
    if fields.bytes("op")? == b"tar.difference" {
        let request = difference::Request::parse(fields, descriptors)?;
        return Ok(Answer::Later(Job::Difference(request)));
    }
    let lost = || Failure::new(Code::Io, "the pipe was lost on the way");
    let mut pipe = || descriptors.pop().ok_or_else(lost);
    match fields.bytes("op")? {
        b"file.read" => read::open(fields),
        b"file.write" => write::open(fields),
        b"file.stat" => change::stat(fields),
        b"file.makeDirectory" => change::make_directory(fields),
        b"file.rename" => change::rename(fields),
        b"file.chmod" => change::chmod(fields),
        b"file.remove" => remove::remove(fields),
        b"file.list" => Ok(Answer::Later(Job::List { path: path(fields, "path")?, to: pipe()? })),
        b"tar.out" => Ok(Answer::Later(Job::TarOut { path: path(fields, "path")?, to: pipe()? })),
        b"tar.in" => {
            let request = tar_in::Request::parse(fields)?;
            Ok(Answer::Later(Job::TarIn { request, from: pipe()? }))
        }
        b"process.list" => Ok(Answer::Later(Job::Processes)),
        _ => Err(Failure::new(Code::Unsupported, "no such file operation")),
    }
}

impl Job<'_> {
    /// What the job's process keeps, besides what it opens.
    pub fn descriptors(&self) -> Vec<i32> {
        match self {
            Job::Copy { from, to } => [from.raw(), to.raw()].into(),
            Job::List { to, .. } | Job::TarOut { to, .. } => [to.raw()].into(),
            Job::TarIn { from, .. } => [from.raw()].into(),
            Job::Difference(request) => request.descriptors().into(),
            Job::Remove { .. } | Job::Processes => Vec::new(),
        }
    }

    /// The overlay's marks are read with it.
    pub fn needs_administration(&self) -> bool {
        matches!(self, Job::Difference(_))
    }

    pub fn run(self) -> Outcome<Map> {
        match self {
            Job::Copy { from, to } => made_up::copy(&from, &to),
            Job::List { path, to } => list::list(path, &to),
            Job::Remove { path, force } => remove::remove_all(path, force),
            Job::TarOut { path, to } => tar_out::write(path, &to),
            Job::TarIn { request, from } => tar_in::unpack(&request, &from),
            Job::Difference(request) => request.write(),
            Job::Processes => processes::list(),
        }
    }
}

fn path<'a>(fields: &Fields<'a>, key: &str) -> Outcome<&'a [u8]> {
    let path = fields.bytes(key)?;
    if path.is_empty() || path.len() > PATH_BYTES_MAX || path.contains(&0) {
        return Err(Failure::invalid(format!("{key} is empty, too long or holds a NUL byte")));
    }
    Ok(path)
}

/// A path in a message, however odd it is.
fn shown(path: &[u8]) -> String {
    String::from_utf8_lossy(&path[..path.len().min(200)]).into_owned()
}

fn failed(errno: i32, path: &[u8]) -> Failure {
    Failure::system(errno, shown(path))
}

/// What is common to all places that tell of a file.
fn describe(map: Map, stat: &Stat) -> Map {
    map.number("sizeBytes", stat.size())
        .number("mode", stat.mode().into())
        .signed("mtimeMs", stat.modified_ms())
}

fn nothing() -> Answer<'static> {
    Answer::Done(pack::map(), None)
}
