use super::check;
use super::fd::c_path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    File,
    Directory,
    Symlink,
    Fifo,
    Socket,
    Device,
}

impl Kind {
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::File => "file",
            Kind::Directory => "directory",
            Kind::Symlink => "symlink",
            Kind::Fifo => "fifo",
            Kind::Socket => "socket",
            Kind::Device => "device",
        }
    }
}

#[derive(Clone, Copy)]
pub struct Stat(libc::stat);

impl Stat {
    pub fn of(fd: i32) -> Result<Stat, i32> {
        let mut stat = unsafe { core::mem::zeroed() };
        check(unsafe { libc::fstat(fd, &mut stat) })?;
        Ok(Stat(stat))
    }

    /// `flags`: 0, or AT_SYMLINK_NOFOLLOW.
    pub fn at(directory: i32, path: &[u8], flags: i32) -> Result<Stat, i32> {
        let path = c_path(path)?;
        let mut stat = unsafe { core::mem::zeroed() };
        check(unsafe { libc::fstatat(directory, path.as_ptr(), &mut stat, flags) })?;
        Ok(Stat(stat))
    }

    pub fn kind(&self) -> Kind {
        match self.0.st_mode & libc::S_IFMT {
            libc::S_IFREG => Kind::File,
            libc::S_IFDIR => Kind::Directory,
            libc::S_IFLNK => Kind::Symlink,
            libc::S_IFIFO => Kind::Fifo,
            libc::S_IFSOCK => Kind::Socket,
            _ => Kind::Device,
        }
    }

    pub fn mode(&self) -> u32 {
        self.0.st_mode & 0o7777
    }

    /// Of a device node: what makes another one of the same device.
    pub fn device(&self) -> u64 {
        self.0.st_rdev
    }

    pub fn device_mode(&self) -> u32 {
        self.0.st_mode
    }

    pub fn size(&self) -> u64 {
        self.0.st_size.max(0) as u64
    }

    pub fn uid(&self) -> u32 {
        self.0.st_uid
    }

    pub fn gid(&self) -> u32 {
        self.0.st_gid
    }

    pub fn links(&self) -> u64 {
        self.0.st_nlink
    }

    /// Device and inode: the file whatever its name.
    pub fn identity(&self) -> (u64, u64) {
        (self.0.st_dev, self.0.st_ino)
    }

    /// Seconds and nanoseconds since 1970; these are never negative. The runtime gives them so for times before, in 32 bits.
    pub fn modified(&self) -> (i64, i64) {
        const SECOND: i64 = 1_000_000_000;
        let (seconds, nanoseconds) = (self.0.st_mtime, i64::from(self.0.st_mtime_nsec as i32));
        (seconds.saturating_add(nanoseconds.div_euclid(SECOND)), nanoseconds.rem_euclid(SECOND))
    }

    /// Mode, owner and time.
    pub fn has_same_attributes(&self, other: &Stat) -> bool {
        let attributes = |stat: &Stat| (stat.mode(), stat.uid(), stat.gid(), stat.modified());
        attributes(self) == attributes(other)
    }

    pub fn modified_ms(&self) -> i64 {
        let (seconds, nanoseconds) = self.modified();
        seconds.saturating_mul(1000).saturating_add(nanoseconds / 1_000_000)
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Space {
    pub total_bytes: u64,
    pub free_bytes: u64,
    pub inodes_total: u64,
    pub inodes_free: u64,
}

/// Of the file system that holds `path`.
pub fn space(path: &[u8]) -> Result<Space, i32> {
    let path = c_path(path)?;
    let mut stat: libc::statfs = unsafe { core::mem::zeroed() };
    check(unsafe { libc::statfs(path.as_ptr(), &mut stat) })?;
    let block = stat.f_bsize as u64;
    Ok(Space {
        total_bytes: stat.f_blocks * block,
        free_bytes: stat.f_bfree * block,
        inodes_total: stat.f_files,
        inodes_free: stat.f_ffree,
    })
}

/// Whether nothing more can be written to the file system that holds `path`, or as good as nothing.
pub fn is_full(path: &[u8]) -> bool {
    space(path).is_ok_and(|space| {
        space.free_bytes < space.total_bytes / 256
            || (space.inodes_total > 0 && space.inodes_free == 0)
    })
}

/// Whether an open file is one that the kernel makes up as it is read: /proc and /sys.
pub fn is_made_up(fd: i32) -> bool {
    const PROC: i64 = 0x9fa0;
    const SYSFS: i64 = 0x6265_6572;
    let mut stat: libc::statfs = unsafe { core::mem::zeroed() };
    let known = unsafe { libc::fstatfs(fd, &mut stat) } == 0;
    !known || matches!(stat.f_type as i64, PROC | SYSFS)
}
