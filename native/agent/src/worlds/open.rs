use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Awaited, State, Waiting, parse_name, paths};
use crate::agent::Agent;
use crate::clock::now_us;
use crate::failure::{Code, Failure, Outcome};
use crate::keeper::message::Tag;
use crate::limits::{GIVEN_MAX, HOSTNAME_BYTES_MAX, LAYERS_MAX};
use crate::pack::{self, Fields};
use crate::streams::Stream;
use crate::sys::check;
use crate::sys::fd::{c_path, write_file};
use crate::sys::mount::{bind, mount};
use crate::sys::stat::Stat;

impl Agent {
    pub fn request_open(&mut self, id: u32, fields: &Fields<'_>, payload: &[u8]) -> Outcome<()> {
        let started_us = now_us();
        let name = parse_name(fields.bytes("world")?)?;
        let mut lowers = self.layer_below(fields)?;
        let above = device(paths::LAYERS.as_bytes());
        for layer in fields.list("layers")? {
            let layer = parse_layer(layer)?;
            if !is_mounted(layer, above) {
                return Err(nothing_mounted(layer));
            }
            lowers.push(layer.to_vec());
        }
        if lowers.is_empty() || lowers.len() > LAYERS_MAX + 1 {
            return Err(Failure::invalid("layers are none or too many"));
        }
        let limits = Limits::parse(fields)?;
        let disk = paths::disk(&name);
        if limits.on_disk && !is_mounted(disk.as_bytes(), device(b"/")) {
            return Err(nothing_mounted(disk.as_bytes()));
        }
        if limits.identity && !is_mounted(paths::IDENTITY.as_bytes(), device(b"/")) {
            return Err(nothing_mounted(paths::IDENTITY.as_bytes()));
        }
        let world = match self.find_world(name.as_bytes()) {
            Ok(world) => world,
            Err(_) => self.prepare_world(&name)?,
        };
        if !self.worlds[world].is_unused() {
            return Err(Failure::new(Code::Exists, format!("world {name} was opened before")));
        }
        self.make_upper(world, &limits)?;
        let extras = pack::map()
            .bytes("upper", self.worlds[world].upper().as_bytes())
            .array("lowers", lowers.len(), |out| {
                lowers.iter().for_each(|lower| pack::bytes(out, lower));
            })
            .finish();
        let serial = self.next_serial();
        self.say_to_keeper(world, Tag::Open, serial, &extras, payload, Vec::new());
        self.worlds[world].opening = Some(serial);
        self.worlds[world].lowers = lowers;
        self.worlds[world].file_bytes_max = limits.file_bytes_max;
        let what = Awaited::Opened;
        self.streams.add(id, Stream::World(Waiting { world, what, started_us, deadline_ms: None }));
        Ok(())
    }

    /// The files of the world that this one starts from.
    fn layer_below(&self, fields: &Fields<'_>) -> Outcome<Vec<Vec<u8>>> {
        let Some(below) = fields.optional_bytes("below")? else {
            return Ok(Vec::new());
        };
        let below = &self.worlds[self.find_world(below)?];
        match below.state {
            State::Ended => Ok([paths::upper_files(&below.name).into_bytes()].into()),
            _ => Err(Failure::new(Code::NotEmpty, "the world below has not ended")),
        }
    }

    /// Made here and not by the keeper: it shows in every world, and a later one may need it.
    fn make_upper(&mut self, world: usize, limits: &Limits) -> Outcome<()> {
        let failed = |errno| Failure::system(errno, "writable layer");
        let place = self.worlds[world].upper();
        make_directory(&place).map_err(failed)?;
        if limits.on_disk {
            let disk = paths::disk(&self.worlds[world].name);
            bind(disk.as_bytes(), place.as_bytes()).map_err(failed)?;
        } else {
            let options =
                format!("size={},nr_inodes={},mode=755", limits.upper_bytes, limits.upper_inodes);
            mount(b"tmpfs", place.as_bytes(), "tmpfs", 0, options.as_bytes()).map_err(failed)?;
        }
        for name in ["u", "w"] {
            make_directory(&format!("{place}/{name}")).map_err(failed)?;
        }
        self.limit_processes(world, limits.pids_max).map_err(failed)?;
        self.worlds[world].limit_users(limits.user_pids_max).map_err(failed)
    }

    pub(super) fn limit_processes(&mut self, world: usize, most: u64) -> Result<(), i32> {
        let world = &mut self.worlds[world];
        if world.pids_max != Some(most) {
            let file = format!("{}/pids.max", world.cgroup());
            write_file(file.as_bytes(), format!("{most}").as_bytes())?;
            world.pids_max = Some(most);
        }
        Ok(())
    }

    pub fn on_opened(&mut self, world: usize) {
        self.worlds[world].state = State::Open;
        self.answer_waiting(world, Awaited::Opened);
    }
}

struct Limits {
    /// The writable layer is a file system that the host mounted, with a size of its own; else one in memory is made.
    on_disk: bool,
    /// The sandbox may be copied, and the world shows who it is.
    identity: bool,
    upper_bytes: u64,
    upper_inodes: u64,
    pids_max: u64,
    user_pids_max: Option<u64>,
    file_bytes_max: Option<u64>,
}

impl Limits {
    /// Everything is checked before anything is made.
    fn parse(fields: &Fields<'_>) -> Outcome<Limits> {
        let hostname = fields.bytes("hostname")?;
        if hostname.is_empty() || hostname.len() > HOSTNAME_BYTES_MAX {
            return Err(Failure::invalid("hostname is empty or too long"));
        }
        for key in ["shmBytes", "pidsMax", "nofileMax", "upperBytes", "upperInodes"] {
            if fields.number(key)? == 0 {
                return Err(Failure::invalid(format!("{key} is 0")));
            }
        }
        fields.optional_bytes("hosts")?;
        fields.optional_bytes("resolv")?;
        for key in ["devices", "given"] {
            if fields.find(key).is_some() && fields.list(key)?.len() > GIVEN_MAX {
                return Err(Failure::invalid(format!("{key} are too many")));
            }
        }
        fields.optional_number("memoryTotalBytes")?;
        fields.optional_number("cpus")?;
        Ok(Limits {
            on_disk: fields.optional_flag("disk")?.unwrap_or(false),
            identity: fields.optional_flag("identity")?.unwrap_or(false),
            upper_bytes: fields.number("upperBytes")?,
            upper_inodes: fields.number("upperInodes")?,
            pids_max: fields.number("pidsMax")?,
            user_pids_max: fields.optional_number("userPidsMax")?,
            file_bytes_max: fields.optional_number("fileBytesMax")?,
        })
    }
}

/// `/img/<number>`: nothing else of the agent's root is a layer.
fn parse_layer(path: &[u8]) -> Outcome<&[u8]> {
    let number = path.strip_prefix(paths::LAYERS.as_bytes());
    let valid =
        |number: &[u8]| (1..=3).contains(&number.len()) && number.iter().all(u8::is_ascii_digit);
    match number {
        Some(number) if valid(number) => Ok(path),
        _ => Err(Failure::invalid("a layer is not /img/<number>")),
    }
}

fn nothing_mounted(path: &[u8]) -> Failure {
    let shown = String::from_utf8_lossy(path);
    Failure::new(Code::NotFound, format!("nothing is mounted on {shown}"))
}

/// Its own root directory is of another device than the one above.
fn is_mounted(layer: &[u8], above: Option<u64>) -> bool {
    device(layer).is_some_and(|layer| Some(layer) != above)
}

fn device(path: &[u8]) -> Option<u64> {
    Stat::at(libc::AT_FDCWD, path, 0).ok().map(|stat| stat.identity().0)
}

fn make_directory(path: &str) -> Result<(), i32> {
    let path = c_path(path.as_bytes())?;
    check(unsafe { libc::mkdir(path.as_ptr(), 0o755) }).map(|_| ())
}
