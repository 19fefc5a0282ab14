//! Why a command did not start, in a sentence for whoever asked for it. The errno goes along.

use alloc::format;
use alloc::string::String;

use super::child::Stage;
use crate::failure::{Code, Failure};
use crate::pack::Fields;
use crate::sys::stat::{Kind, Stat};

const SHOWN_BYTES: usize = 200;

pub fn explain(stage: Stage, errno: i32, fields: &Fields<'_>) -> Failure {
    let name = fields.list("argv").ok().and_then(|names| names.first().copied());
    let name = name.unwrap_or_default();
    let (code, message) = match stage {
        Stage::Directory => directory(errno, fields.bytes("cwd").unwrap_or_default()),
        Stage::Execution => execution(errno, name),
        Stage::User => (None, format!("{} can't get its user", shown(name))),
        Stage::Born | Stage::Limits => (None, format!("{} can't be set up", shown(name))),
    };
    let failure = Failure::system(errno, message);
    Failure { code: code.unwrap_or(failure.code), ..failure }
}

fn directory(errno: i32, path: &[u8]) -> (Option<Code>, String) {
    let why = match errno {
        libc::ENOENT => "does not exist in the sandbox",
        libc::ENOTDIR => "is not a directory",
        libc::EACCES => "may not be entered by this user",
        _ => "can't be entered",
    };
    // For who starts a command, both are a directory that is not there.
    let code = (errno == libc::ENOTDIR).then_some(Code::NotFound);
    (code, format!("the working directory {} {why}", shown(path)))
}

fn execution(errno: i32, name: &[u8]) -> (Option<Code>, String) {
    let named = shown(name);
    let (code, why) = match errno {
        libc::ENOENT if !name.contains(&b'/') => {
            (None, "not found in the directories of PATH in the sandbox")
        }
        libc::ENOENT if stands(name) => {
            (None, "it is there, but the interpreter or loader that it names is not")
        }
        libc::ENOENT => (None, "no such file in the sandbox"),
        libc::ENOTDIR => (Some(Code::NotFound), "a part of its path is not a directory"),
        libc::EACCES if is_directory(name) => (None, "it is a directory"),
        libc::EACCES => (None, "it is not executable for this user"),
        libc::EISDIR => (Some(Code::Permission), "it is a directory"),
        libc::ENOEXEC => (
            Some(Code::Permission),
            "it is no program that this machine runs: neither a binary for it nor a script",
        ),
        libc::ETXTBSY => (Some(Code::Permission), "it is being written"),
        libc::E2BIG => {
            (Some(Code::TooLarge), "its arguments and environment are longer than the kernel takes")
        }
        libc::ELOOP => (None, "the links to it lead in a circle"),
        libc::ENAMETOOLONG => (None, "its path is too long"),
        libc::ENOMEM => (None, "no memory is left for it in the sandbox"),
        libc::EAGAIN => (Some(Code::Limit), "there are as many processes as there may be"),
        _ => (None, "it can't be run"),
    };
    (code, format!("{named}: {why}"))
}

/// The keeper's root is the world's; only its working directory is another one.
fn stands(path: &[u8]) -> bool {
    path.starts_with(b"/") && Stat::at(libc::AT_FDCWD, path, 0).is_ok()
}

fn is_directory(path: &[u8]) -> bool {
    path.starts_with(b"/")
        && Stat::at(libc::AT_FDCWD, path, 0).is_ok_and(|stat| stat.kind() == Kind::Directory)
}

fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(&name[..name.len().min(SHOWN_BYTES)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pack;

    fn check(stage: Stage, errno: i32, name: &str, code: Code, message: &str) {
        let request = pack::map()
            .array("argv", 1, |out| {
                out.extend([&[0xa0 | name.len() as u8], name.as_bytes()].concat())
            })
            .bytes("cwd", b"/work");
        let bytes = request.finish();
        let failure = explain(stage, errno, &pack::parse_map(&bytes).unwrap());
        assert_eq!((failure.code, &failure.message[..], failure.errno), (code, message, errno));
    }

    #[test]
    fn sentences() {
        use Stage::{Directory, Execution};
        let path = "tool: not found in the directories of PATH in the sandbox";
        check(Execution, libc::ENOENT, "tool", Code::NotFound, path);
        let none = "/no/such: no such file in the sandbox";
        check(Execution, libc::ENOENT, "/no/such", Code::NotFound, none);
        let loader = "/etc: it is there, but the interpreter or loader that it names is not";
        check(Execution, libc::ENOENT, "/etc", Code::NotFound, loader);
        check(Execution, libc::EACCES, "/etc", Code::Permission, "/etc: it is a directory");
        let closed = "/x: it is not executable for this user";
        check(Execution, libc::EACCES, "/x", Code::Permission, closed);
        let long = "a: its arguments and environment are longer than the kernel takes";
        check(Execution, libc::E2BIG, "a", Code::TooLarge, long);
        check(Execution, libc::EIO, "a", Code::Io, "a: it can't be run");
        let nowhere = "the working directory /work does not exist in the sandbox";
        check(Directory, libc::ENOENT, "a", Code::NotFound, nowhere);
        let file = "the working directory /work is not a directory";
        check(Directory, libc::ENOTDIR, "a", Code::NotFound, file);
    }
}
