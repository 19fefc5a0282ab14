//! Gives a prepared world its image: the overlay root, and what was staged moved into it.
//! Nothing of the world runs yet, so paths can be looked at before they are used.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::given;
use super::message::Message;
use super::prepare::{Prepared, SEED, directory, tmpfs};
use super::spawn::Limits;
use crate::failure::{Failure, Outcome};
use crate::pack::{self, Fields};
use crate::sys::capabilities;
use crate::sys::fd::{self, write_all_blocking};
use crate::sys::mount::{self, NO_SUID_DEV_EXEC, mount};
use crate::sys::process::{self, Processors};
use crate::sys::stat::{Kind, Stat};
use crate::worlds::paths::{IDENTITY, NEW_ROOT, ROOT, STAGE};

/// The body is the request as it came, checked by the agent; extras: `upper`, `lowers`.
pub fn open(message: &Message<'_>, prepared: &Prepared) -> Outcome<Limits> {
    let (fields, extras) = (pack::parse_map(message.body)?, pack::parse_map(message.extras)?);
    let limits = Limits::parse(&fields, &prepared.ceilings)?;
    let root = format!("{NEW_ROOT}{ROOT}");
    prepared.machine.show(&fields)?;
    mount_overlay(&root, &extras)?;
    for name in ["proc", "sys", "dev"] {
        let target = mount_point(&root, name)?;
        mount::move_to(format!("{STAGE}/{name}").as_bytes(), target.as_bytes())
            .map_err(|errno| Failure::system(errno, format!("move of /{name}")))?;
    }
    mount_shared_memory(&root, &fields)?;
    if let Some(hosts) = fields.optional_bytes("hosts")? {
        show_in_etc(&root, "hosts", &stage_file("hosts", hosts)?)?;
    }
    if let Some(servers) = fields.optional_bytes("resolv")? {
        given::show_name_servers(&root, &stage_file("resolv.conf", servers)?)?;
    }
    given::show(&root, &fields)?;
    if fields.optional_flag("identity")?.unwrap_or(false) {
        show_in_etc(&root, "machine-id", &format!("{IDENTITY}/machine-id"))?;
        cover(&format!("{root}/dev/{SEED}"), &format!("{IDENTITY}/seed"))?;
    }
    mount::pivot(NEW_ROOT.as_bytes()).map_err(|errno| Failure::system(errno, "pivot_root"))?;
    mount::make_read_only(b"/", NO_SUID_DEV_EXEC)
        .map_err(|errno| Failure::system(errno, "read-only base"))?;
    mount::change_root(ROOT.as_bytes()).map_err(|errno| Failure::system(errno, "chroot"))?;
    settle(&fields, &prepared.processors)?;
    Ok(limits)
}

fn mount_overlay(root: &str, extras: &Fields<'_>) -> Outcome<()> {
    let lowers = extras.list("lowers")?.join(&b':');
    let upper = extras.bytes("upper")?;
    let mut options: Vec<u8> = b"lowerdir=".to_vec();
    options.extend_from_slice(&lowers);
    for (key, name) in [(",upperdir=", "/u"), (",workdir=", "/w")] {
        options.extend_from_slice(key.as_bytes());
        options.extend_from_slice(upper);
        options.extend_from_slice(name.as_bytes());
    }
    mount(b"overlay", root.as_bytes(), "overlay", 0, &options)
        .map_err(|errno| Failure::system(errno, "overlay of the layers"))
}

/// Made where the image lacks it. A link would lead out of the world.
fn mount_point(root: &str, name: &str) -> Outcome<String> {
    let path = format!("{root}/{name}");
    match Stat::at(libc::AT_FDCWD, path.as_bytes(), libc::AT_SYMLINK_NOFOLLOW) {
        Ok(stat) if stat.kind() == Kind::Directory => {}
        Ok(_) => return Err(Failure::invalid(format!("/{name} of the image is not a directory"))),
        Err(libc::ENOENT) => directory(&path, 0o755)?,
        Err(errno) => return Err(Failure::system(errno, format!("/{name}"))),
    }
    Ok(path)
}

fn mount_shared_memory(root: &str, fields: &Fields<'_>) -> Outcome<()> {
    let (bytes, inodes) = (fields.number("shmBytes")?, fields.number("upperInodes")?);
    let inodes = inodes.clamp(16, 16_384);
    let options = format!("size={bytes},nr_inodes={inodes},mode=1777");
    tmpfs(&format!("{root}/dev/shm"), &options, libc::MS_NOSUID | libc::MS_NODEV)
}

/// Bound over the image's file, so that it is no change of the world's own layer where one exists.
fn show_in_etc(root: &str, name: &str, source: &str) -> Outcome<()> {
    let no_follow = libc::AT_SYMLINK_NOFOLLOW;
    let etc = format!("{root}/etc");
    match Stat::at(libc::AT_FDCWD, etc.as_bytes(), no_follow).map(|stat| stat.kind()) {
        Ok(Kind::Directory) => {}
        Err(libc::ENOENT) => directory(&etc, 0o755)?,
        _ => return Ok(()),
    }
    let place = format!("{etc}/{name}");
    match Stat::at(libc::AT_FDCWD, place.as_bytes(), no_follow).map(|stat| stat.kind()) {
        Ok(Kind::File) => {}
        Err(libc::ENOENT) => {
            let flags = libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY;
            fd::open(place.as_bytes(), flags, 0o644)
                .map_err(|errno| Failure::system(errno, place.clone()))?;
        }
        _ => return Ok(()),
    }
    cover(&place, source)
}

fn stage_file(name: &str, content: &[u8]) -> Outcome<String> {
    let path = format!("{STAGE}/{name}");
    let flags = libc::O_CREAT | libc::O_WRONLY;
    let file = fd::open(path.as_bytes(), flags, 0o644)
        .map_err(|errno| Failure::system(errno, path.clone()))?;
    write_all_blocking(file.raw(), content);
    Ok(path)
}

pub fn cover(place: &str, source: &str) -> Outcome<()> {
    mount::bind(source.as_bytes(), place.as_bytes())
        .map_err(|errno| Failure::system(errno, format!("bind of {source}")))
}

/// The last things that need more than a container's capabilities; then they are gone for good,
/// except the one that lets long work be done outside of the world's sight.
fn settle(fields: &Fields<'_>, processors: &Processors) -> Outcome<()> {
    process::set_host_name(fields.bytes("hostname")?)
        .map_err(|errno| Failure::system(errno, "hostname"))?;
    if let Some(count) = fields.optional_number("cpus")? {
        processors
            .use_first(count as usize)
            .map_err(|errno| Failure::system(errno, "processors"))?;
    }
    capabilities::set(capabilities::OF_KEEPER | capabilities::SYS_ADMIN, capabilities::OF_KEEPER)
        .map_err(|errno| Failure::system(errno, "capabilities"))
}
