/**
 * What a coordinator asks of a node. Both sides exchange messages alone: every argument and answer is plain data that could be
 * written down, nothing is shared and changed, because one day the two are on different machines.
 *
 * ## Rules
 * - **Every call may be repeated** and then means the same: ids are chosen by the caller, and the node recognises what it has
 *   begun. A caller that restarts asks again.
 * - `signal` and `timeoutMs` end the wait alone. What was begun goes on; `release` is what ends it, also a creation under way.
 * - A call fails with a `SandlotError`. `sandbox_unknown`: this node has no such sandbox and knows no fate of it.
 *   `sandbox_gone` and `sandbox_lost`: it ended; `details.ending` is its `SandboxEnded`. The errors of the workload
 *   (`exec_failed`, `file_not_found`, `no_space`, …) are told apart by `fault: 'workload'` or `'caller'`.
 * - An **owner** is who wants a sandbox: `client`, or an attempt as `run/key/attempt`. Its **epoch** grows with each owner in turn;
 *   a request of an older epoch is refused with `lease_lost`.
 */
import type {
  Flag,
  NetworkPhase,
  PhaseNetwork,
  Resources,
  RestoreCommand,
  SandboxEnding,
  SandboxOrigin,
  SandboxState,
  SecretUses,
  Tags,
} from '@sandlot/protocol'
import type { ModelNews } from '@sandlot/runtime'
import type { CollectedFiles, CollectFilesRequest } from './collect-files.ts'
import type { NodeExecEnd } from './exec-end.ts'
import type { ExecAddress, NodeExecRequest } from './port-exec.ts'
import type { PutFilesRequest, ReadFileRequest } from './port-files.ts'
import type {
  EndWorldRequest,
  EnterPhaseRequest,
  OpenGradeWorldRequest,
  PassFilesRequest,
} from './port-worlds.ts'

export type { NodeExecEnd } from './exec-end.ts'
export type { ExecAddress, NodeExecRequest } from './port-exec.ts'
export type { PutFile, PutFilesRequest, ReadFileRequest } from './port-files.ts'
export type {
  EndWorldRequest,
  EnterPhaseRequest,
  GraderWorld,
  OpenGradeWorldRequest,
  PassFilesRequest,
  StepWorld,
  WorldShows,
} from './port-worlds.ts'

export interface NodePort {
  /** Name of the node. */
  readonly node: string

  /**
   * Creates a sandbox with its world `main` open, or finds the one of this id.
   * Waits for room and a turn up to `waitMs`. Errors: `image_unknown`, `capacity` (neither in time), `create_failed`, `timeout`,
   * `draining`, `unsupported`, `on_restore_failed`, `sandbox_gone` where the id was used up.
   */
  acquire(request: AcquireRequest, wait?: NodeWait): Promise<NodeSandbox>

  /**
   * Announces sandboxes that are about to be asked for, so that some of them wait. A hint: nothing is promised, and after a minute it is
   * forgotten. Told again under the same name it takes the place of what was told before.
   */
  expect(request: ExpectRequest): Promise<void>

  /**
   * Ends a sandbox and removes what it left, or the creation under way. Idempotent: asked again it tells the same ending while that
   * is remembered (about an hour). An unknown id is answered with the ending `stopped` and no usage.
   */
  release(request: ReleaseRequest, wait?: NodeWait): Promise<SandboxEnded>

  /**
   * Runs a command to its end, at most once per `exec` id: asked again it waits for the same command. A command that fails or
   * meets its deadline is an answer. Errors: `exec_failed` (not started), `sandbox_limit`, and those above.
   */
  exec(request: NodeExecRequest, wait?: NodeWait): Promise<NodeExecEnd>

  /** Signals a command and all it started; 9 where no signal is named. `exec_unknown`. */
  killExec(
    request: ExecAddress & { readonly signal?: number },
    wait?: NodeWait,
  ): Promise<{ readonly processes: number }>

  /**
   * Ends `main` for certain and opens `grade`, over its files, over the image alone or over another image, or `control` without its files;
   * or opens a `step…` world beside it. Asked again when it is open, it answers at once. `image_unknown`.
   */
  openGradeWorld(request: OpenGradeWorldRequest, wait?: NodeWait): Promise<void>

  /** Ends a `step…` world with all that runs in it. Idempotent. */
  endWorld(request: EndWorldRequest, wait?: NodeWait): Promise<void>

  /** Copies files from `main` into another world of the sandbox. Asked again it does it again. */
  passFiles(request: PassFilesRequest, wait?: NodeWait): Promise<void>

  /**
   * From now on the sandbox is in this phase, whose network policy decides; connections that it refuses are closed. `world` is where its
   * commands run.
   */
  enterPhase(request: EnterPhaseRequest, wait?: NodeWait): Promise<void>

  /** Whether the sandbox has begun a command of this id: it runs, or ran and is remembered. */
  hasExec(request: ExecAddress, wait?: NodeWait): Promise<boolean>

  /** All commands that the sandbox remembers: those that run, and of those that ended the latest, which are bounded. */
  knownExecs(request: Pick<ExecAddress, 'sandbox'>, wait?: NodeWait): Promise<ReadonlySet<string>>

  /**
   * Writes files, with missing directories, in the place of whatever is there, after `remove` and `clear`. Asked again it does it again.
   * `blob_unknown`.
   */
  putFiles(request: PutFilesRequest, wait?: NodeWait): Promise<void>

  /**
   * Stores the files of the world `main` whose paths match, as blobs. What can't be had is told and fails nothing; when the wait is over
   * it gives what it has.
   */
  collectFiles(request: CollectFilesRequest, wait?: NodeWait): Promise<CollectedFiles>
  /** The content of a regular file; undefined where there is nothing. `too_large` beyond `bytesMax`. */
  readFile(request: ReadFileRequest, wait?: NodeWait): Promise<Uint8Array | undefined>

  /** The sandbox as it stands, or how it ended; undefined where the node knows nothing of it. */
  find(sandbox: string): Promise<NodeSandbox | SandboxEnded | undefined>

  /** All that live or are being created; after a restart those that were adopted. */
  list(): Promise<readonly NodeSandbox[]>

  /**
   * News of endings that their owner did not ask for by `release`, until `signal` aborts. It starts with the call: a caller that was away
   * compares with `list` and asks `find`.
   */
  endings(options: { readonly signal: AbortSignal }): AsyncIterable<SandboxEnded>

  /** News of calls of sandboxes' models, until `signal` aborts. It starts with the call; with the node all calls have ended. */
  modelCalls(options: { readonly signal: AbortSignal }): AsyncIterable<ModelCall>

  /** How many sandboxes of these resources the node can hold. */
  capacity(resources: Resources): Promise<NodeCapacity>
}

/** A call of a sandbox's model. */
export type ModelCall = ModelNews & { readonly sandbox: string }

export interface NodeWait {
  readonly signal?: AbortSignal
  readonly timeoutMs?: number
}

export interface AcquireRequest {
  /** `sb_…`, never used before. */
  readonly sandbox: string
  /** Id of an image. */
  readonly image: string
  readonly resources: Resources
  readonly project: string
  readonly owner: string
  readonly epoch: number
  /** On top of the image's, for every command. */
  readonly env?: Readonly<Record<string, string>>
  /** Instead of the image's. */
  readonly workdir?: string
  readonly user?: string
  readonly tags?: Tags
  /** Default: `sandlot`. */
  readonly hostname?: string
  /** It ends after so long without exec, stream or connection. Default: only its owner ends it. */
  readonly keepWarmMs?: number
  /** It ends so long after it was opened. Default: no end. */
  readonly lifetimeMs?: number
  /** What each phase may reach. Default: nothing. */
  readonly network?: PhaseNetwork
  /** What is put into its requests on their way out, to hosts that its network allows. */
  readonly secrets?: SecretUses
  /** Address of a model that it finds on its loopback, whatever its network; `modelCalls` tells of each call. */
  readonly model?: string
  /** The API answers on its loopback, to tokens of sandboxes alone. */
  readonly reachesApi?: boolean
  /** The phase that it is in at first. Default `agent`. */
  readonly phase?: NetworkPhase
  /** How long to wait for room, and then for a turn among those that are started. Default 0: refuse at once where there is no room. */
  readonly waitMs?: number
  /** What its owner named to start from, where that is not the image itself. */
  readonly from?: string
  /** Its memory can be saved. Then no blank can be used. */
  readonly checkpointable?: boolean
  /** The name of saved memory of this node to start from, taken of a sandbox of the same image and resources. */
  readonly checkpoint?: string
  /** Id of the image to start from where this machine can't restore that memory. Default: fail with `snapshot_incompatible`. */
  readonly coldInstead?: string
  /** Runs before anybody is given a sandbox that begins with that memory. `on_restore_failed` where it fails. */
  readonly onRestore?: RestoreCommand
  /** The sandbox that it is a copy of. */
  readonly parent?: string
}

/** Sandboxes alike that are about to be asked for. */
export interface ExpectRequest
  extends Pick<AcquireRequest, 'image' | 'resources' | 'checkpoint' | 'checkpointable'> {
  /** Of whoever announces them. */
  readonly name: string
  /** Default: as many as blanks wait at first. */
  readonly count?: number
}

/** A sandbox that lives, or is being created. */
export interface NodeSandbox {
  readonly sandbox: string
  readonly node: string
  readonly state: Exclude<SandboxState, 'stopped'>
  readonly project: string
  readonly owner: string
  readonly epoch: number
  readonly image: string
  readonly resources: Resources
  readonly tags: Tags
  /** Image's and own together: what a command sees. */
  readonly env: Readonly<Record<string, string>>
  readonly workdir: string
  readonly user: string
  readonly createdAtMs: number
  /** From the request to the world being open, without the wait for room; absent while it is being created. */
  readonly createMs?: number
  /** Where it came from. */
  readonly origin?: SandboxOrigin
  readonly checkpointable?: boolean
  readonly parent?: string
}

export interface ReleaseRequest {
  readonly sandbox: string
  /** Refused where the sandbox has a younger owner. Default: whoever has it. */
  readonly epoch?: number
  /** One line, kept as the ending's detail. */
  readonly reason: string
  /** Who asks. Default: its owner. Of anybody else's release the owner is told by `endings`. */
  readonly by?: 'owner' | 'other'
}

/** How a sandbox ended: recorded once, and then always told the same. */
export interface SandboxEnded {
  readonly sandbox: string
  readonly node: string
  readonly project: string
  readonly owner: string
  readonly epoch: number
  readonly image: string
  readonly kind: SandboxEnding
  /** True where `release` was called before it ended; false where it ended by itself. */
  readonly asked: boolean
  /** Evidence, one line for a person. */
  readonly detail: string
  readonly atMs: number
  /** Quotas that were met and survived. */
  readonly flags: readonly Flag[]
  /** A grader's world was opened: from then on it may have been the grader's doing. */
  readonly gradeOpened?: boolean
  /** Connections of its broke off with a daemon, and nothing was reached after that: its commands may have failed of it. */
  readonly cutOff?: boolean
  /** From its open world, or its last resume, to its end, and what that came to; null without a price table. */
  readonly metered?: { readonly ms: number; readonly micros: number | null }
  readonly usage: {
    readonly cpuMs: number
    readonly memoryBytes: number
    readonly memoryPeakBytes: number
    /** The largest that was seen of the writable layers; 0 where nothing was seen. */
    readonly diskBytes: number
    /** To and from other hosts, since the node's last start. */
    readonly networkBytes: number
  }
}

export interface NodeCapacity {
  readonly node: string
  /** Why it can never have any such sandbox: it lacks the GPUs. */
  readonly never?: string
  /** All together, if nothing else ran. */
  readonly sandboxes: number
  /** On top of what runs now. */
  readonly free: number
  /** Creations that make sense at once. */
  readonly creating: number
}
