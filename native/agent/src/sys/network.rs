use super::fd::Fd;
use super::{check, errno};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loopback {
    V4,
    V6,
}

/// A listener on the loopback address of the sandbox. No other socket can share its port.
pub fn listen(loopback: Loopback, port: u16, backlog: i32) -> Result<Fd, i32> {
    let family = match loopback {
        Loopback::V4 => libc::AF_INET,
        Loopback::V6 => libc::AF_INET6,
    };
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    let socket = Fd::own(check(unsafe { libc::socket(family, kind, 0) })? as i32);
    match loopback {
        Loopback::V4 => {
            let mut address: libc::sockaddr_in = unsafe { core::mem::zeroed() };
            address.sin_family = family as libc::sa_family_t;
            address.sin_port = port.to_be();
            address.sin_addr.s_addr = u32::from_ne_bytes([127, 0, 0, 1]);
            bind(&socket, &address)?;
        }
        Loopback::V6 => {
            set(&socket, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, &1i32)?;
            let mut address: libc::sockaddr_in6 = unsafe { core::mem::zeroed() };
            address.sin6_family = family as libc::sa_family_t;
            address.sin6_port = port.to_be();
            address.sin6_addr.s6_addr[15] = 1;
            bind(&socket, &address)?;
        }
    }
    check(unsafe { libc::listen(socket.raw(), backlog) })?;
    Ok(socket)
}

/// The next connection; it doesn't block.
pub fn accept(listener: &Fd) -> Result<Fd, i32> {
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    let (address, length) = (core::ptr::null_mut(), core::ptr::null_mut());
    loop {
        let fd = unsafe { libc::accept4(listener.raw(), address, length, flags) };
        if fd >= 0 {
            return Ok(Fd::own(fd));
        }
        if errno() != libc::EINTR {
            return Err(errno());
        }
    }
}

/// The peer reads an end of file behind what was written.
pub fn end_writing(socket: &Fd) {
    unsafe { libc::shutdown(socket.raw(), libc::SHUT_WR) };
}

/// From now on closing the socket resets the connection: the peer can't take what it has for the whole.
pub fn reset_on_close(socket: &Fd) {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    let _ = set(socket, libc::SOL_SOCKET, libc::SO_LINGER, &linger);
}

fn bind<A>(socket: &Fd, address: &A) -> Result<(), i32> {
    let length = size_of::<A>() as libc::socklen_t;
    let address: *const A = address;
    check(unsafe { libc::bind(socket.raw(), address.cast(), length) }).map(|_| ())
}

fn set<T>(socket: &Fd, level: i32, option: i32, value: &T) -> Result<(), i32> {
    let length = size_of::<T>() as libc::socklen_t;
    let value: *const T = value;
    check(unsafe { libc::setsockopt(socket.raw(), level, option, value.cast(), length) })
        .map(|_| ())
}
