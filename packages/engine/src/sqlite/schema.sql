-- Schema version 1.
CREATE INDEX blob_pins_digest ON blob_pins (digest);
CREATE INDEX kv_entries_expiry ON kv_entries (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX queue_keys_over ON queue_keys (expires_at) WHERE present = 0;
CREATE INDEX queue_messages_due ON queue_messages (queue, due_at) WHERE state <> 0;
CREATE INDEX queue_messages_ready ON queue_messages (queue, priority DESC, id) WHERE state = 0;
CREATE TABLE blob_pins (
  name TEXT PRIMARY KEY,
  digest TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE kv_entries (
  key TEXT PRIMARY KEY,
  revision INTEGER NOT NULL,
  expires_at INTEGER,
  value BLOB NOT NULL
) STRICT;
CREATE TABLE kv_revision (
  last INTEGER NOT NULL
) STRICT;
CREATE TABLE log_checkpoints (
  stream INTEGER PRIMARY KEY,
  position INTEGER NOT NULL,
  state BLOB NOT NULL
) STRICT;
CREATE TABLE log_garbage (
  stream INTEGER PRIMARY KEY
) STRICT;
CREATE TABLE log_keys (
  stream INTEGER NOT NULL,
  dedup TEXT NOT NULL,
  position INTEGER NOT NULL,
  PRIMARY KEY (stream, dedup)
) STRICT, WITHOUT ROWID;
CREATE TABLE log_records (
  id INTEGER PRIMARY KEY,
  dedup TEXT,
  bytes BLOB NOT NULL
) STRICT;
CREATE TABLE log_streams (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  head INTEGER NOT NULL,
  trimmed INTEGER NOT NULL
) STRICT;
CREATE TABLE queue_keys (
  queue INTEGER NOT NULL,
  dedup TEXT NOT NULL,
  id INTEGER NOT NULL,
  present INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (queue, dedup)
) STRICT, WITHOUT ROWID;
CREATE TABLE queue_messages (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  queue INTEGER NOT NULL,
  state INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  token INTEGER NOT NULL DEFAULT 0,
  deliveries INTEGER NOT NULL DEFAULT 0,
  dedup TEXT,
  body BLOB NOT NULL
) STRICT;
CREATE TABLE queue_names (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  token INTEGER NOT NULL DEFAULT 0
) STRICT;
