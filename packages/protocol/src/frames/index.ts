export { FrameDecoder } from './decoder.ts'
export { encodeFrame, encodeSync } from './encode.ts'
export {
  FRAME,
  FRAME_LIMITS,
  type FrameName,
  type FrameSink,
  type FrameType,
  MALFORMED_REASONS,
  MalformedFrame,
  type MalformedReason,
  SYNC_MAGIC,
} from './frame.ts'
export type { Prey } from './hunt.ts'
export type { ChannelChunk } from './inbox.ts'
export {
  type FrameTransport,
  Mux,
  type MuxLimits,
  type MuxOptions,
  type OpenOptions,
} from './mux.ts'
export type { MuxStream, ReadOptions } from './mux-stream.ts'
export {
  decodePayload,
  encodePayload,
  measureValue,
  type PayloadMap,
  PayloadRefused,
  PayloadTooLarge,
} from './payload.ts'
export { releasePayload } from './release.ts'
export {
  ConnectionLost,
  MuxBusy,
  RemoteError,
  StreamCancelled,
  type StreamFailure,
  StreamOver,
} from './stream-error.ts'
