use alloc::borrow::Cow;

/// Error codes of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    Invalid,
    Unsupported,
    NotFound,
    Exists,
    IsDirectory,
    NotDirectory,
    NotFile,
    NotEmpty,
    Permission,
    NoSpace,
    TooLarge,
    WorldNotOpen,
    WorldUnknown,
    ExecUnknown,
    ExecExists,
    Limit,
    Busy,
    Cancelled,
    Io,
    Refused,
}

impl Code {
    const ALL: [(Code, &'static str); 20] = [
        (Code::Invalid, "invalid"),
        (Code::Unsupported, "unsupported"),
        (Code::NotFound, "not_found"),
        (Code::Exists, "exists"),
        (Code::IsDirectory, "is_directory"),
        (Code::NotDirectory, "not_directory"),
        (Code::NotFile, "not_file"),
        (Code::NotEmpty, "not_empty"),
        (Code::Permission, "permission"),
        (Code::NoSpace, "no_space"),
        (Code::TooLarge, "too_large"),
        (Code::WorldNotOpen, "world_not_open"),
        (Code::WorldUnknown, "world_unknown"),
        (Code::ExecUnknown, "exec_unknown"),
        (Code::ExecExists, "exec_exists"),
        (Code::Limit, "limit"),
        (Code::Busy, "busy"),
        (Code::Cancelled, "cancelled"),
        (Code::Io, "io"),
        (Code::Refused, "refused"),
    ];

    pub fn as_str(self) -> &'static str {
        Code::ALL.iter().find(|(code, _)| *code == self).map_or("io", |(_, name)| name)
    }

    pub fn parse(name: &[u8]) -> Code {
        Code::ALL
            .iter()
            .find(|(_, text)| text.as_bytes() == name)
            .map_or(Code::Io, |(code, _)| *code)
    }
}

/// Why a request failed; becomes an `error` frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub code: Code,
    pub message: Cow<'static, str>,
    /// 0 where no system call failed.
    pub errno: i32,
}

impl Failure {
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Failure {
        Failure { code, message: message.into(), errno: 0 }
    }

    pub fn invalid(message: impl Into<Cow<'static, str>>) -> Failure {
        Failure::new(Code::Invalid, message)
    }

    /// A failed system call; `what` is the thing it was done to.
    pub fn system(errno: i32, what: impl Into<Cow<'static, str>>) -> Failure {
        let code = match errno {
            libc::ENOENT => Code::NotFound,
            libc::EEXIST => Code::Exists,
            libc::EISDIR => Code::IsDirectory,
            libc::ENOTDIR => Code::NotDirectory,
            libc::ENOTEMPTY => Code::NotEmpty,
            libc::EACCES | libc::EPERM | libc::EROFS => Code::Permission,
            libc::ENOSPC | libc::EDQUOT => Code::NoSpace,
            libc::EFBIG => Code::TooLarge,
            libc::EINVAL => Code::Invalid,
            libc::ENXIO => Code::NotFile,
            _ => Code::Io,
        };
        Failure { code, message: what.into(), errno }
    }
}

pub type Outcome<T> = Result<T, Failure>;
