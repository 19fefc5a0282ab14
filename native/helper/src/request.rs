//! One line from the daemon, and its typed fields.

use crate::fail::Fail;
use serde_json::{Value, json};
use std::ffi::CString;
use std::time::Duration;

pub struct Request(Value);

impl Request {
    pub fn parse(line: &[u8]) -> Result<Request, Fail> {
        match serde_json::from_slice(line) {
            Ok(value @ Value::Object(_)) => Ok(Request(value)),
            Ok(_) => Err(Fail::new("request", "not an object")),
            Err(error) => Err(Fail::new("request", error.to_string())),
        }
    }

    pub fn id(&self) -> Value {
        self.0.get("id").cloned().unwrap_or(json!(null))
    }

    pub fn text(&self, key: &str) -> Result<&str, Fail> {
        self.0.get(key).and_then(Value::as_str).ok_or_else(|| missing(key))
    }

    pub fn texts(&self, key: &str) -> Result<Vec<&str>, Fail> {
        let items = self.0.get(key).and_then(Value::as_array).ok_or_else(|| missing(key))?;
        items.iter().map(|item| item.as_str().ok_or_else(|| missing(key))).collect()
    }

    pub fn path(&self, key: &str) -> Result<CString, Fail> {
        c_path(self.text(key)?)
    }

    pub fn flag(&self, key: &str) -> Result<bool, Fail> {
        self.0.get(key).and_then(Value::as_bool).ok_or_else(|| missing(key))
    }

    pub fn number(&self, key: &str) -> Result<i32, Fail> {
        let number = self.0.get(key).and_then(Value::as_i64).ok_or_else(|| missing(key))?;
        i32::try_from(number).map_err(|_| missing(key))
    }

    pub fn deadline(&self) -> Result<Duration, Fail> {
        let millis = self.0.get("deadlineMs").and_then(Value::as_u64);
        millis.map(Duration::from_millis).ok_or_else(|| missing("deadlineMs"))
    }
}

pub fn c_path(text: &str) -> Result<CString, Fail> {
    CString::new(text).map_err(|_| Fail::new("request", "a path holds a zero byte"))
}

fn missing(key: &str) -> Fail {
    Fail::new("request", format!("{key} is missing or of the wrong kind"))
}
