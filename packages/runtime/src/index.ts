export { gvisorOptions, packageSettings } from './config.ts'
export {
  type Blank,
  type BlankOptions,
  type CheckpointFacts,
  type CheckpointOptions,
  type CheckpointSource,
  type DiskSpace,
  DRIVER_ERROR_CODES,
  type DriverCapabilities,
  DriverError,
  type DriverErrorCode,
  type EndedSandbox,
  FATES,
  type Fate,
  type FateKind,
  type GradeWorldSpec,
  type Layer,
  type MemorySpace,
  type ProbeFinding,
  type Reconciled,
  type ReconcileOptions,
  type Recovery,
  type RefusedPackets,
  type RuntimeDriver,
  type Sandbox,
  type SandboxLimits,
  type SandboxSpec,
  type Usage,
  type Wait,
  type WorldAhead,
} from './driver.ts'
export type { FakeCue } from './fake/cue.ts'
export { FakeDriver, type FakeDriverOptions } from './fake/driver.ts'
export { FakeMachine } from './fake/machine.ts'
export type { FakeServer } from './fake/ports.ts'
export {
  type FakeClock,
  type FakeCommand,
  type FakeReply,
  type FakeScript,
  fewCommands,
} from './fake/script.ts'
export type { GpuDevice, MachineGpus } from './gpu/machine-gpus.ts'
export { isOfModel } from './gpu/models.ts'
export type {
  ContentStream,
  DifferenceOptions,
  ExecChunk,
  ExecHandle,
  ExecInput,
  ExecListing,
  ExecMode,
  ExecOffsets,
  ExecOutcome,
  ExecResult,
  ExecRunSpec,
  ExecSpec,
  FileContent,
  Guest,
  GuestBytes,
  GuestConfiguration,
  GuestExecs,
  GuestFileEntry,
  GuestFileKind,
  GuestFileStat,
  GuestFiles,
  GuestHello,
  GuestIdentity,
  GuestNews,
  GuestPort,
  GuestPorts,
  GuestProcess,
  GuestStats,
  GuestTars,
  GuestText,
  GuestWait,
  OutputCount,
  ReadRange,
  WorldEnder,
  WorldSpec,
  WorldState,
  WorldStats,
  WriteOptions,
} from './guest/guest.ts'
export {
  GUEST_ERROR_CODES,
  GUEST_LOST_CAUSES,
  GuestError,
  type GuestErrorCode,
  GuestLost,
  type GuestLostCause,
  GuestTimeout,
} from './guest/guest-error.ts'
export { isReachedByLoopback } from './guest/guest-ports.ts'
export { GUEST_LIMITS } from './guest/limits.ts'
export { GvisorDriver } from './gvisor/driver.ts'
export type { GvisorOptions } from './gvisor/options.ts'
export { probeMachine } from './gvisor/probe.ts'
export type { SystrapOptions } from './gvisor/runsc.ts'
export { promisedDiskBytes, type SandboxSizes, savedBytesMax, sizesOf } from './gvisor/sizing.ts'
export { trySandbox } from './gvisor/trial.ts'
export type { HasBlob, OpenBlob } from './image/build.ts'
export type { Collected } from './image/collector.ts'
export type { DebianOptions } from './image/debian.ts'
export { EXPORT_FORMATS, type ExportFormat } from './image/export/export.ts'
export { tarFile } from './image/export/tar-writer.ts'
export { defaultImageConfig, type Image, type ImageLayer } from './image/image.ts'
export {
  IMAGE_ERROR_CODES,
  ImageError,
  type ImageErrorCode,
  imageUnknown,
  isUnreadableRecord,
} from './image/image-error.ts'
export { NODE_PATH } from './image/node/own-files.ts'
export type { RegistryOptions } from './image/registry.ts'
export type { ResolveId } from './image/resolve.ts'
export { type BuildWait, type FunctionCall, SharedBuilds } from './image/shared-builds.ts'
export type { OpenStepMachine, StepMachine, StepMachineRequest } from './image/steps/machine.ts'
export {
  type ExtendRequest,
  type ImageStore,
  type ImageStoreOptions,
  type LayerProblem,
  openImageStore,
  type PinnedImage,
} from './image/store.ts'
export { TarError } from './image/tar/header.ts'
export { readTar } from './image/tar/reader.ts'
export { describeLeftover, findLeftovers, removeLeftovers } from './leftovers/find.ts'
export type { Finder, Leftover, LeftoverKind, LeftoverScope } from './leftovers/leftover.ts'
export { LEFTOVER_KINDS } from './leftovers/leftover.ts'
export { helpersOf } from './leftovers/processes.ts'
export {
  type Survey,
  type SurveyedDriver,
  type SurveyOptions,
  surveyMachine,
} from './leftovers/survey.ts'
export { RUNTIME_LIMITS } from './limits.ts'
export type { NetworkEnvironment, NetworkFile } from './network/environment.ts'
export { headersOf } from './network/hop-headers.ts'
export { targetOf } from './network/host.ts'
export type { InnerServer } from './network/inner-server.ts'
export { NETWORK_LIMITS } from './network/limits.ts'
export { MachineNetwork } from './network/machine.ts'
export type { ModelEndpoint, ModelNews } from './network/model-relay.ts'
export type { PackageMirrors } from './network/packages/mirrors.ts'
export type { PackageSettings } from './network/packages/settings.ts'
export {
  allowsAnything,
  type CompiledPolicy,
  compilePolicy,
  limitsInForce,
  type MirrorHost,
} from './network/policy.ts'
export { REFUSALS, type RefusalKind } from './network/refusal.ts'
export { NetworkRelay, type RelayNews } from './network/relay.ts'
export { SandboxNetwork, type SandboxNetworkOptions } from './network/sandbox-network.ts'
export { Authority } from './network/secrets/authority.ts'
export { issueFor, type KeyedCertificate, makeAuthority } from './network/secrets/certificate.ts'
export { activeSecrets, RelaySecrets } from './network/secrets/relay-secrets.ts'
export { answerWithout, changeProtocol, type Upgrading } from './network/upgrade.ts'
