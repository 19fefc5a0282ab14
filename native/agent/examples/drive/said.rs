//! What the agent said, with owned bytes and plain look-ups.

use std::fmt;

use crate::pack::{Value, parse_map};

#[derive(Clone, PartialEq)]
pub enum Said {
    Nothing,
    Flag(bool),
    Number(i64),
    Bytes(Vec<u8>),
    List(Vec<Said>),
    Map(Vec<(String, Said)>),
}

impl Said {
    pub fn parse(payload: &[u8]) -> Said {
        match parse_map(payload) {
            Ok(fields) => Said::of(&fields.into_value()),
            Err(failure) => panic!("the agent sent {failure:?}: {payload:?}"),
        }
    }

    fn of(value: &Value<'_>) -> Said {
        match value {
            Value::Nil | Value::Other => Said::Nothing,
            Value::Flag(flag) => Said::Flag(*flag),
            Value::Unsigned(number) => Said::Number(*number as i64),
            Value::Negative(number) => Said::Number(*number),
            Value::Float(number) => Said::Number(*number as i64),
            Value::Bytes(bytes) => Said::Bytes(bytes.to_vec()),
            Value::Array(values) => Said::List(values.iter().map(Said::of).collect()),
            Value::Map(entries) => {
                let entry =
                    |(key, value): &(Value<'_>, Value<'_>)| (Said::of(key).text(), Said::of(value));
                Said::Map(entries.iter().map(entry).collect())
            }
        }
    }

    pub fn is_nothing(&self) -> bool {
        *self == Said::Nothing
    }

    pub fn get(&self, key: &str) -> &Said {
        match self {
            Said::Map(entries) => entries
                .iter()
                .find(|(name, _)| name == key)
                .map_or(&Said::Nothing, |(_, value)| value),
            _ => &Said::Nothing,
        }
    }

    pub fn number(&self, key: &str) -> i64 {
        match self.get(key) {
            Said::Number(number) => *number,
            other => panic!("{key} is {other:?} in {self:?}"),
        }
    }

    pub fn flag(&self, key: &str) -> bool {
        *self.get(key) == Said::Flag(true)
    }

    pub fn text(&self) -> String {
        match self {
            Said::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            other => panic!("{other:?} is no text"),
        }
    }

    pub fn list(&self, key: &str) -> &[Said] {
        match self.get(key) {
            Said::List(list) => list,
            other => panic!("{key} is {other:?}"),
        }
    }

    pub fn code(&self) -> String {
        self.get("code").text()
    }
}

impl fmt::Debug for Said {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Said::Nothing => write!(out, "nothing"),
            Said::Flag(flag) => write!(out, "{flag}"),
            Said::Number(number) => write!(out, "{number}"),
            Said::Bytes(bytes) => write!(out, "{:?}", String::from_utf8_lossy(bytes)),
            Said::List(list) => out.debug_list().entries(list).finish(),
            Said::Map(entries) => {
                out.debug_map().entries(entries.iter().map(|(key, value)| (key, value))).finish()
            }
        }
    }
}
