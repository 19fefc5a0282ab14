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
export {
  type FrameTransport,
  Mux,
  type MuxLimits,
  type MuxOptions,
  type OpenOptions,
} from './mux.ts'
export { type ChannelChunk, MuxStream, type StreamFailure } from './mux-stream.ts'
export {
  decodePayload,
  encodePayload,
  measureValue,
  type PayloadMap,
  PayloadTooLarge,
} from './payload.ts'
