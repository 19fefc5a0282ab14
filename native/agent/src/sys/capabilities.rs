/// What a command of a world may have at most: CHOWN, DAC_OVERRIDE, FOWNER, KILL, SETGID, SETUID.
pub const OF_COMMANDS: u64 = 1 << 0 | 1 << 1 | 1 << 3 | 1 << 5 | 1 << 6 | 1 << 7;
/// Beside those the keeper sets ids' bits of files as an archive says: FSETID.
pub const OF_KEEPER: u64 = OF_COMMANDS | 1 << 4;
pub const SYS_ADMIN: u64 = 1 << 21;
pub const NONE: u64 = 0;

const LAST: u64 = 40;

/// Narrows what any later exec can gain.
pub fn bound(kept: u64) {
    for capability in (0..=LAST).filter(|capability| kept >> capability & 1 == 0) {
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
    }
}

/// What this process may raise, and what is in force now. Nothing is handed on by inheritance.
pub fn set(permitted: u64, effective: u64) -> Result<(), i32> {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    #[repr(C)]
    struct Half {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    let header = Header { version: 0x2008_0522, pid: 0 };
    let halves = [0, 32].map(|shift| Half {
        effective: (effective >> shift) as u32,
        permitted: (permitted >> shift) as u32,
        inheritable: 0,
    });
    super::check(unsafe { libc::syscall(libc::SYS_capset, &header, halves.as_ptr()) }).map(|_| ())
}
