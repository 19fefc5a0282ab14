export type { BackupFile, BackupOptions } from './backup.ts'
export type {
  BlobCallOptions,
  BlobInfo,
  BlobSource,
  Blobs,
  Collected,
  CollectOptions,
  Digest,
  ListPinsOptions,
  OpenBlob,
  OpenBlobOptions,
  PinListing,
  PutBlobOptions,
} from './blobs.ts'
export type {
  Bus,
  BusMessage,
  RequestContext,
  RequestHandler,
  RequestOptions,
  SubscribeOptions,
} from './bus.ts'
export type { BusFaults } from './bus-delivery.ts'
export { type Clock, systemClock } from './clock.ts'
export { type Deadline, deadline } from './deadline.ts'
export type { Engine } from './engine.ts'
export {
  ENGINE_ERRORS,
  EngineError,
  type EngineErrorCode,
  type EngineErrorDetails,
  type EngineErrorOptions,
  isEngineError,
} from './error.ts'
export type {
  Kv,
  KvCallOptions,
  KvDeleteOptions,
  KvEntry,
  KvEvent,
  KvListing,
  KvListOptions,
  KvPutOptions,
  Revision,
} from './kv.ts'
export {
  APPEND_BYTES_MAX,
  APPEND_RECORDS_MAX,
  MESSAGE_BYTES_MAX,
  VALUE_BYTES_MAX,
} from './limits.ts'
export type {
  Appended,
  AppendOptions,
  Checkpoint,
  Duplicate,
  Log,
  LogCallOptions,
  LogListing,
  LogListOptions,
  LogRecord,
  Position,
  ReadOptions,
  StreamInfo,
  TailOptions,
} from './log.ts'
export { onAbort } from './on-abort.ts'
export type {
  Lease,
  LeaseOptions,
  LeaseRef,
  ListMessagesOptions,
  MessageListing,
  NackOptions,
  PutMessageOptions,
  Queue,
  QueueCallOptions,
  QueueDepth,
  QueuePut,
} from './queue.ts'
export { lockDirectory } from './sqlite/directory-lock.ts'
export { openSqliteEngine, type SqliteEngineOptions } from './sqlite/open.ts'
export { RESTORE_HINT } from './sqlite/sqlite-error.ts'
