use crate::failure::{Code, Failure, Outcome};
use crate::pack::{Fields, Map};
use crate::sys::fd::Fd;

pub struct Request<'a> {
    pub path: &'a [u8],
}

impl<'a> Request<'a> {
    pub fn parse(fields: &Fields<'a>) -> Outcome<Request<'a>> {
        Ok(Request { path: super::path(fields, "path")? })
    }
}

pub fn unpack(_request: &Request<'_>, _from: &Fd) -> Outcome<Map> {
    Err(Failure::new(Code::Unsupported, "tar.in"))
}
