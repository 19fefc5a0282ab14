use super::fd::Fd;
use super::{check, errno};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loopback {
    V4,
    V6,
}

/// A listener on the loopback address of the sandbox. No other socket can share its port.
pub fn listen(loopback: Loopback, port: u16, backlog: i32) -> Result<Fd, i32> {
    let socket = tcp(loopback)?;
    match loopback {
        Loopback::V4 => call_with(&socket, &v4(port), libc::bind)?,
        Loopback::V6 => {
            set(&socket, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, &1i32)?;
            call_with(&socket, &v6(port), libc::bind)?;
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

/// A connection to a port of the loopback that is on its way: made, or known to have failed (`connect_error`), once it can be
/// written.
pub fn connect(loopback: Loopback, port: u16) -> Result<Fd, i32> {
    let socket = tcp(loopback)?;
    let made = match loopback {
        Loopback::V4 => call_with(&socket, &v4(port), libc::connect),
        Loopback::V6 => call_with(&socket, &v6(port), libc::connect),
    };
    match made {
        Ok(()) | Err(libc::EINPROGRESS) => Ok(socket),
        Err(errno) => Err(errno),
    }
}

/// What became of a connection that was on its way; 0 when it is made. One that met itself, for want of a listener, is refused.
pub fn connect_error(socket: &Fd) -> i32 {
    let mut errno = 0i32;
    let mut length = size_of::<i32>() as libc::socklen_t;
    let value: *mut i32 = &mut errno;
    let (level, option) = (libc::SOL_SOCKET, libc::SO_ERROR);
    match unsafe { libc::getsockopt(socket.raw(), level, option, value.cast(), &mut length) } {
        0 if errno == 0
            && port_at(socket, libc::getsockname) == port_at(socket, libc::getpeername) =>
        {
            libc::ECONNREFUSED
        }
        0 => errno,
        _ => super::errno(),
    }
}

type NameOf = unsafe extern "C" fn(i32, *mut libc::sockaddr, *mut libc::socklen_t) -> i32;

/// The port at one end of a connection: it stands at the same place in the addresses of both families.
fn port_at(socket: &Fd, name_of: NameOf) -> u16 {
    let mut address: libc::sockaddr_in6 = unsafe { core::mem::zeroed() };
    let mut length = size_of::<libc::sockaddr_in6>() as libc::socklen_t;
    let pointer: *mut libc::sockaddr_in6 = &mut address;
    unsafe { name_of(socket.raw(), pointer.cast(), &mut length) };
    address.sin6_port
}

/// The peer reads an end of file behind what was written.
pub fn end_writing(socket: &Fd) {
    unsafe { libc::shutdown(socket.raw(), libc::SHUT_WR) };
}

/// Something was sent that nobody has read yet.
pub fn has_unread(socket: &Fd) -> bool {
    let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
    let mut byte = 0u8;
    unsafe { libc::recv(socket.raw(), (&raw mut byte).cast(), 1, flags) == 1 }
}

/// From now on closing the socket resets the connection: the peer can't take what it has for the whole.
pub fn reset_on_close(socket: &Fd) {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    let _ = set(socket, libc::SOL_SOCKET, libc::SO_LINGER, &linger);
}

fn tcp(loopback: Loopback) -> Result<Fd, i32> {
    let family = match loopback {
        Loopback::V4 => libc::AF_INET,
        Loopback::V6 => libc::AF_INET6,
    };
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    Ok(Fd::own(check(unsafe { libc::socket(family, kind, 0) })? as i32))
}

fn v4(port: u16) -> libc::sockaddr_in {
    let mut address: libc::sockaddr_in = unsafe { core::mem::zeroed() };
    address.sin_family = libc::AF_INET as libc::sa_family_t;
    address.sin_port = port.to_be();
    address.sin_addr.s_addr = u32::from_ne_bytes([127, 0, 0, 1]);
    address
}

fn v6(port: u16) -> libc::sockaddr_in6 {
    let mut address: libc::sockaddr_in6 = unsafe { core::mem::zeroed() };
    address.sin6_family = libc::AF_INET6 as libc::sa_family_t;
    address.sin6_port = port.to_be();
    address.sin6_addr.s6_addr[15] = 1;
    address
}

type CallWith = unsafe extern "C" fn(i32, *const libc::sockaddr, libc::socklen_t) -> i32;

fn call_with<A>(socket: &Fd, address: &A, call: CallWith) -> Result<(), i32> {
    let length = size_of::<A>() as libc::socklen_t;
    let address: *const A = address;
    check(unsafe { call(socket.raw(), address.cast(), length) }).map(|_| ())
}

fn set<T>(socket: &Fd, level: i32, option: i32, value: &T) -> Result<(), i32> {
    let length = size_of::<T>() as libc::socklen_t;
    let value: *const T = value;
    check(unsafe { libc::setsockopt(socket.raw(), level, option, value.cast(), length) })
        .map(|_| ())
}
