use alloc::vec::Vec;

use super::{describe, failed};
use crate::failure::{Failure, Outcome};
use crate::pack::{self, Map};
use crate::sys::directory::Entries;
use crate::sys::fd::{Fd, write_all_blocking};
use crate::sys::stat::Stat;

/// Entries are written this many bytes at a time.
const BATCH_BYTES: usize = 32 << 10;

/// Writes one map per entry; what vanishes meanwhile is left out.
pub fn list(path: &[u8], to: &Fd) -> Outcome<Map> {
    let mut entries = Entries::open(path).map_err(|errno| failed(errno, path))?;
    let (mut batch, mut count) = (Vec::with_capacity(BATCH_BYTES), 0);
    while let Some(name) = entries.next() {
        let stat = Stat::at(entries.descriptor(), &name, libc::AT_SYMLINK_NOFOLLOW);
        let Ok(stat) = stat else { continue };
        let map = pack::map().bytes("name", &name).text("kind", stat.kind().as_str());
        batch.extend(describe(map, &stat).finish());
        count += 1;
        if batch.len() >= BATCH_BYTES {
            flush(&mut batch, to)?;
        }
    }
    flush(&mut batch, to)?;
    Ok(pack::map().number("count", count))
}

fn flush(batch: &mut Vec<u8>, to: &Fd) -> Outcome<()> {
    if !write_all_blocking(to.raw(), batch) {
        return Err(Failure::system(libc::EPIPE, "nobody reads the list any more"));
    }
    batch.clear();
    Ok(())
}
