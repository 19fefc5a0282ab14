//! Users and groups of the world, read from its own files: the C library's way would load the host's
//! name services. The files are as hostile as the image.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::failure::{Failure, Outcome};
use crate::limits::{ACCOUNT_FILE_BYTES_MAX, GROUPS_MAX};
use crate::sys::fd::{open, read_to_end};
use crate::sys::stat::{Kind, Stat};

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Account {
    pub uid: u32,
    pub gid: u32,
    pub groups: Vec<u32>,
}

/// `name`, `name:group`, `uid` or `uid:gid`; nothing is root.
pub fn resolve(user: Option<&[u8]>) -> Outcome<Account> {
    let Some(user) = user.filter(|user| *user != b"0:0" && *user != b"root") else {
        return Ok(Account::default());
    };
    find(user, &|path| contents(path))
}

fn find(user: &[u8], contents: &dyn Fn(&str) -> Vec<u8>) -> Outcome<Account> {
    let unknown = || {
        let shown = String::from_utf8_lossy(&user[..user.len().min(64)]);
        Failure::invalid(format!("user {shown} is not known in this world"))
    };
    let mut parts = user.splitn(2, |byte| *byte == b':');
    let (name, group) = (parts.next().unwrap_or_default(), parts.next());
    if let (Some(uid), Some(Some(gid))) = (number(name), group.map(number)) {
        return Ok(Account { uid, gid, groups: Vec::new() });
    }
    let users = contents("/etc/passwd");
    let entry = lines(&users).find(|entry| match number(name) {
        Some(uid) => entry.get(2).copied().and_then(number) == Some(uid),
        None => entry.first() == Some(&name),
    });
    let column =
        |at: usize| entry.as_ref().and_then(|entry| entry.get(at)).copied().and_then(number);
    let uid = number(name).or(column(2)).ok_or_else(unknown)?;
    let Some(group) = group else {
        let known_as = entry.as_ref().and_then(|entry| entry.first()).copied();
        let groups = known_as.map(|name| groups_of(name, &contents("/etc/group")));
        return Ok(Account {
            uid,
            gid: column(3).unwrap_or(0),
            groups: groups.unwrap_or_default(),
        });
    };
    let groups = contents("/etc/group");
    let named = || {
        let entry = lines(&groups).find(|entry| entry.first() == Some(&group))?;
        entry.get(2).copied().and_then(number)
    };
    let gid = number(group).or_else(named).ok_or_else(unknown)?;
    Ok(Account { uid, gid, groups: Vec::new() })
}

/// Groups that list the user as a member.
fn groups_of(name: &[u8], file: &[u8]) -> Vec<u32> {
    lines(file)
        .filter(|entry| {
            let members = entry.get(3).copied().unwrap_or_default();
            members.split(|byte| *byte == b',').any(|member| member == name)
        })
        .filter_map(|entry| entry.get(2).copied().and_then(number))
        .take(GROUPS_MAX)
        .collect()
}

fn lines(file: &[u8]) -> impl Iterator<Item = Vec<&[u8]>> {
    file.split(|byte| *byte == b'\n').map(|line| line.split(|byte| *byte == b':').collect())
}

/// A plain decimal id; -1 is "don't change" to the kernel and so no id.
fn number(text: &[u8]) -> Option<u32> {
    let text = core::str::from_utf8(text).ok().filter(|text| !text.starts_with('+'))?;
    text.parse().ok().filter(|id| *id != u32::MAX)
}

fn contents(path: &str) -> Vec<u8> {
    let flags = libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY;
    let Ok(file) = open(path.as_bytes(), flags, 0) else {
        return Vec::new();
    };
    match Stat::of(file.raw()) {
        Ok(stat) if stat.kind() == Kind::File => {
            read_to_end(&file, ACCOUNT_FILE_BYTES_MAX).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: &str = "root:x:0:0:root:/root:/bin/sh\n\nbroken\nann:x:1000:1001::/home/ann:/bin/sh\nbad:x:-1:4294967295::/:\n";
    const GROUPS: &str =
        "root:x:0:\nann:x:1001:\nstaff:x:50:bob,ann\nwheel:x:10:ann\nodd:x:y:ann\n";

    fn check(user: &str, expected: Option<(u32, u32, &[u32])>) {
        let files = |path: &str| -> Vec<u8> {
            if path == "/etc/passwd" { USERS.into() } else { GROUPS.into() }
        };
        let found = find(user.as_bytes(), &files).ok();
        let expected =
            expected.map(|(uid, gid, groups)| Account { uid, gid, groups: groups.to_vec() });
        assert_eq!(found, expected, "{user}");
    }

    #[test]
    fn users() {
        check("ann", Some((1000, 1001, &[50, 10])));
        check("1000", Some((1000, 1001, &[50, 10])));
        check("ann:staff", Some((1000, 50, &[])));
        check("ann:7", Some((1000, 7, &[])));
        check("5:6", Some((5, 6, &[])));
        check("5", Some((5, 0, &[])));
        check("5:staff", Some((5, 50, &[])));
        check("nobody", None);
        check("ann:nowhere", None);
        check("", None);
        check("bad", None);
        check("4294967295:0", None);
        check("-1", None);
        check("+5:+6", None);
    }
}
