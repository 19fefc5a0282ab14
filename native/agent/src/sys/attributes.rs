use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// As long as the kernel lets a list of names be.
const LIST_BYTES: usize = 64 << 10;
/// Marks of the overlay itself: no file of a world has them.
const OF_OVERLAY: &str = "trusted.overlay.";

/// Names of the extended attributes of an open file or directory; none where there can't be any.
pub fn attribute_names(file: i32) -> Vec<String> {
    let length = unsafe { libc::flistxattr(file, core::ptr::null_mut(), 0) };
    if length <= 0 {
        return Vec::new();
    }
    let mut list = vec![0u8; LIST_BYTES];
    let length = unsafe { libc::flistxattr(file, list.as_mut_ptr().cast(), list.len()) };
    list.truncate(length.max(0) as usize);
    list.split(|byte| *byte == 0)
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .filter(|name| !name.is_empty() && !name.starts_with(OF_OVERLAY))
        .collect()
}
