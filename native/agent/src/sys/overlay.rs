use super::errno;

/// Whether a directory of an overlay's upper hides all that lies below it. Needs SYS_ADMIN.
pub fn is_opaque(directory: i32) -> Result<bool, i32> {
    let name = c"trusted.overlay.opaque";
    let mut value = [0u8; 2];
    let into = value.as_mut_ptr().cast();
    match unsafe { libc::fgetxattr(directory, name.as_ptr(), into, value.len()) } {
        count if count >= 0 => Ok(value[..count as usize] == *b"y"),
        _ if errno() == libc::ENODATA => Ok(false),
        _ => Err(errno()),
    }
}
