import './polyfill.ts'

export {
  type Artifact,
  type AuditEntry,
  type EpisodeItem,
  type EpisodeState,
  type EpisodeView,
  ERROR_CODES,
  type ErrorCode,
  type ExecEnd,
  type ExecView,
  type Fault,
  type FileEntry,
  type FileStat,
  FLAGS,
  type Flag,
  type Health,
  type ImageView,
  type KeyCreated,
  type KeyView,
  type NetworkChoice,
  type NetworkInForce,
  type NetworkLogEntry,
  type NetworkPolicy,
  type NetworkPolicyInput,
  type OnRestoreInput,
  OUTCOMES,
  type Outcome,
  type PhaseNetwork,
  type PolicyAction,
  type QueueView,
  type ResourcesInput,
  type ResultGroup,
  type ResultRow,
  type RunReport,
  type RunState,
  type RunView,
  type SandboxView,
  SandlotError,
  type Scope,
  type SecretUses,
  type SecretUsesInput,
  type SecretView,
  type Tags,
  type TemplateView,
  type TerminalSize,
  type UsageLine,
  type UsageReport,
} from '@sandlot/protocol'
export { type BackupOptions, Sandlot, type SandlotOptions } from './client.ts'
export type { Endpoint } from './config.ts'
export type { Waiting } from './connection/context.ts'
export type { Notice } from './connection/notices.ts'
export { FunctionCall } from './function/function-call.ts'
export { FunctionError } from './function/function-error.ts'
export type {
  FunctionContext,
  FunctionLog,
  FunctionOptions,
  FunctionRow,
  MapInputsOptions,
} from './function/options.ts'
export { RemoteFunction } from './function/remote-function.ts'
export {
  type PythonFunctionOptions,
  type PythonFunctionTest,
  pythonFunction,
} from './graders/python-function.ts'
export { harborDigest } from './harbor/digest.ts'
export { type HarborOptions, harborTasks } from './harbor/harbor-tasks.ts'
export type { HarborAgent } from './harbor/places.ts'
export type { HarborProblem } from './harbor/problems.ts'
export { type HarborProgramOptions, harborProgram } from './harbor/program.ts'
export type {
  HarborArtifacts,
  HarborEnvironment,
  HarborFile,
  HarborNetwork,
  HarborPhase,
  HarborScript,
  HarborStep,
  HarborSteps,
  HarborTask,
  HarborVerifier,
} from './harbor/task.ts'
export { Image, ImageDescription } from './image/image.ts'
export type { Images } from './image/images.ts'
export type {
  CopyOptions,
  DockerfileOptions,
  LocalCopyOptions,
  RunOptions,
} from './image/local-step.ts'
export type { BuildOptions, ImageLike } from './image/resolve.ts'
export type { CreateKey, Keys } from './keys.ts'
export type { LocalOptions } from './local/local.ts'
export type {
  DeadTask,
  PutManyOptions,
  PutOptions,
  QueueOptions,
  QueueResultsOptions,
  QueueRow,
} from './queue/options.ts'
export type { ListQueues, Queues } from './queue/queues.ts'
export { TaskQueue } from './queue/task-queue.ts'
export type { ArtifactContent } from './rollout/artifacts.ts'
export type {
  Episode,
  EpisodeContext,
  EpisodeResult,
  GradeContext,
  Grader,
  Verdict,
} from './rollout/episode.ts'
export type { Batch, BatchOptions, GroupsOptions } from './rollout/groups.ts'
export type { ModelCall } from './rollout/model-clock.ts'
export { ModelError } from './rollout/model-error.ts'
export { OpenRun, type Put, type PutMany } from './rollout/open-run.ts'
export type {
  AttachOptions,
  BroughtContent,
  CommandGrade,
  ContainerGrade,
  FunctionGrade,
  FunctionRunOptions,
  GradePlace,
  GroupOptions,
  MapOptions,
  OpenFunctionOptions,
  OpenOptions,
  RewardOption,
  RunOptions as RolloutOptions,
} from './rollout/options.ts'
export type { EpisodeInContainers } from './rollout/player.ts'
export type {
  GradedElsewhere,
  OpenProgramOptions,
  Program,
  ProgramOptions,
  ProgramStep,
  StepGrade,
  TaskGrade,
  TaskOptions,
} from './rollout/program-options.ts'
export type { ListRuns, Rollouts } from './rollout/rollouts.ts'
export { type EpisodesOptions, type ResultsOptions, Run } from './rollout/run.ts'
export type { ByteSource } from './sandbox/bytes.ts'
export { type ExecOptions, ExecStream, type ExecStreamOptions } from './sandbox/exec.ts'
export type { ExecChunk, ExecResult } from './sandbox/exec-result.ts'
export type {
  Files,
  FileUrlOptions,
  ReadOptions,
  SandboxPath,
  WriteOptions,
} from './sandbox/files.ts'
export { PortConnection } from './sandbox/port-connection.ts'
export { Ports, type PortUrlOptions, type PortWaitOptions } from './sandbox/ports.ts'
export { Pty, type PtyAttachOptions, type PtyChunk, type PtyOptions } from './sandbox/pty.ts'
export { Ptys } from './sandbox/ptys.ts'
export { type ForkOptions, Sandbox, type SnapshotOptions } from './sandbox/sandbox.ts'
export type { ListSandboxes, Sandboxes, SandboxOptions } from './sandbox/sandboxes.ts'
export {
  type SimulatedModelCall,
  type SimulatedModelOptions,
  simulatedModel,
} from './simulated/model.ts'
export {
  type SimulatedTrainer,
  type SimulatedTrainerOptions,
  simulatedTrainer,
} from './simulated/trainer.ts'
export type { ListSnapshots, Snapshot, Snapshots } from './snapshot/snapshots.ts'
export type { PrepareOptions, SetupStep } from './template/prepare.ts'
export type { ListTemplates, Templates } from './template/templates.ts'
export type { UsageOptions } from './usage.ts'
