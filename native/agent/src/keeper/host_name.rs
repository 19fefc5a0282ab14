//! The host name of a world whose sandbox has become another one.

use crate::failure::{Failure, Outcome};
use crate::pack::Fields;
use crate::sys::capabilities::{self, OF_KEEPER, SYS_ADMIN};
use crate::sys::process;

pub fn renew(fields: &Fields<'_>) -> Outcome<()> {
    let failed = |errno| Failure::system(errno, "hostname");
    capabilities::set(OF_KEEPER | SYS_ADMIN, OF_KEEPER | SYS_ADMIN).map_err(failed)?;
    let named = process::set_host_name(fields.bytes("hostname")?);
    let _ = capabilities::set(OF_KEEPER | SYS_ADMIN, OF_KEEPER);
    named.map_err(failed)
}
