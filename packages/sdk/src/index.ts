export {
  ERROR_CODES,
  type ErrorCode,
  type ExecEnd,
  type ExecView,
  type Fault,
  type FileEntry,
  type FileStat,
  FLAGS,
  type Flag,
  type ImageView,
  OUTCOMES,
  type Outcome,
  type PolicyAction,
  type ResourcesInput,
  type ResultRow,
  type RunReport,
  type RunView,
  type SandboxView,
  SandlotError,
  type Tags,
} from '@sandlot/protocol'
export { Sandlot, type SandlotOptions } from './client.ts'
export type { Endpoint } from './config.ts'
export {
  type PythonFunctionOptions,
  type PythonFunctionTest,
  pythonFunction,
} from './graders/python-function.ts'
export { Image, type ImageDescription } from './image/image.ts'
export type { Images } from './image/images.ts'
export type { BuildOptions, ImageLike } from './image/resolve.ts'
export {
  type Episode,
  type EpisodeContext,
  type EpisodeResult,
  type GradeContext,
  type Grader,
  ModelError,
  type Verdict,
} from './rollout/episode.ts'
export type { BroughtContent, CommandGrade, FunctionGrade, MapOptions } from './rollout/options.ts'
export type { Rollouts } from './rollout/rollouts.ts'
export { type ResultsOptions, Run } from './rollout/run.ts'
export type { ByteSource } from './sandbox/bytes.ts'
export { type ExecOptions, ExecStream } from './sandbox/exec.ts'
export type { ExecChunk, ExecResult } from './sandbox/exec-result.ts'
export type { Files, SandboxPath, Waiting } from './sandbox/files.ts'
export { Sandbox } from './sandbox/sandbox.ts'
export type { ListSandboxes, Sandboxes, SandboxOptions } from './sandbox/sandboxes.ts'
