//! Why a request failed: at which stage, in one line, and the last words of the runtime's log where it has any.

use serde_json::{Value, json};

pub struct Fail {
    stage: &'static str,
    message: String,
    log: Option<String>,
}

impl Fail {
    pub fn new(stage: &'static str, message: impl Into<String>) -> Fail {
        Fail { stage, message: message.into(), log: None }
    }

    pub fn io(stage: &'static str, error: std::io::Error) -> Fail {
        Fail::new(stage, error.to_string())
    }

    /// The calling thread's errno, with what it was met on.
    pub fn errno(stage: &'static str, what: &str) -> Fail {
        Fail::new(stage, format!("{what}: {}", std::io::Error::last_os_error()))
    }

    pub fn with_log(mut self, log: String) -> Fail {
        self.log = Some(log);
        self
    }

    pub fn to_json(&self) -> Value {
        let mut value = json!({ "stage": self.stage, "message": self.message });
        if let Some(log) = &self.log {
            value["log"] = json!(log);
        }
        value
    }
}
