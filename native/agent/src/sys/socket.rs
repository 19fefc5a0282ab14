use alloc::vec::Vec;

use super::fd::Fd;
use super::{check, errno};
use crate::limits::MESSAGE_DESCRIPTORS_MAX;

/// Two ends that keep message boundaries and carry descriptors.
pub fn pair() -> Result<(Fd, Fd), i32> {
    let mut ends = [0; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    check(unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) })?;
    Ok((Fd::own(ends[0]), Fd::own(ends[1])))
}

const CONTROL_BYTES: usize = 64;
const _: () = assert!(
    unsafe { libc::CMSG_SPACE((MESSAGE_DESCRIPTORS_MAX * 4) as u32) } as usize <= CONTROL_BYTES
);

#[repr(align(8))]
struct Control([u8; CONTROL_BYTES]);

/// One message; it goes whole or not at all.
pub fn send(socket: &Fd, bytes: &[u8], descriptors: &[i32]) -> Result<(), i32> {
    let mut control = Control([0; CONTROL_BYTES]);
    let mut part = libc::iovec { iov_base: bytes.as_ptr() as *mut _, iov_len: bytes.len() };
    let mut message: libc::msghdr = unsafe { core::mem::zeroed() };
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    if !descriptors.is_empty() {
        let size = size_of_val(descriptors) as u32;
        unsafe {
            message.msg_control = control.0.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(size) as usize;
            let header = libc::CMSG_FIRSTHDR(&message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(size) as usize;
            let data = libc::CMSG_DATA(header).cast::<i32>();
            for (at, fd) in descriptors.iter().enumerate() {
                data.add(at).write_unaligned(*fd);
            }
        }
    }
    loop {
        match check(unsafe { libc::sendmsg(socket.raw(), &message, libc::MSG_NOSIGNAL) } as i64) {
            Ok(_) => return Ok(()),
            Err(libc::EINTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// The next message into `buffer`; a length of 0 is the end of the peer.
pub fn receive(socket: &Fd, buffer: &mut [u8]) -> Result<(usize, Vec<Fd>), i32> {
    let mut control = Control([0; CONTROL_BYTES]);
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut message: libc::msghdr = unsafe { core::mem::zeroed() };
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = CONTROL_BYTES;
    let count = loop {
        let count = unsafe { libc::recvmsg(socket.raw(), &mut message, libc::MSG_CMSG_CLOEXEC) };
        if count >= 0 {
            break count as usize;
        }
        if errno() != libc::EINTR {
            return Err(errno());
        }
    };
    Ok((count, descriptors_of(&message)))
}

fn descriptors_of(message: &libc::msghdr) -> Vec<Fd> {
    let mut descriptors = Vec::new();
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while !header.is_null() {
            if (*header).cmsg_level == libc::SOL_SOCKET && (*header).cmsg_type == libc::SCM_RIGHTS {
                let size = (*header).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
                let data = libc::CMSG_DATA(header).cast::<i32>();
                for at in 0..size / size_of::<i32>() {
                    descriptors.push(Fd::own(data.add(at).read_unaligned()));
                }
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
    descriptors
}
