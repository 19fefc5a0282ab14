/**
 * A task folder in Harbor's format, read: what its settings mean here, with every default filled in that is the format's own. What a task
 * leaves open (`undefined`) is whatever the run says.
 */
import type { NetworkPolicy, ResourcesInput } from '@sandlot/protocol'
import type { ImageDescription } from '../image/image.ts'

export interface HarborTask {
  /** Its folder below the one that was read, or its own name where that is it: the key of its episode. */
  readonly key: string
  readonly directory: string
  /** `[task].name`: what a registry calls it. */
  readonly name?: string
  /** What the agent is asked to do, without the format's canary lines. Empty where the steps have one each. */
  readonly instruction: string
  readonly environment: HarborEnvironment
  readonly agent: HarborPhase
  /** Where it has no steps, which have one each. */
  readonly verifier?: HarborVerifier
  /** Files for `/solution`, among them `solve.sh`. None: there is no gold solution to run. */
  readonly solution?: HarborScript
  /** Of a task in several steps. */
  readonly steps?: HarborSteps
  /** What of its files has no meaning here, and is passed over. */
  readonly notes: readonly string[]
}

export interface HarborEnvironment {
  /** With the folders for logs. */
  readonly image: ImageDescription
  readonly resources: ResourcesInput
  readonly env: Readonly<Record<string, string>>
  /** Default: the image's. */
  readonly workdir?: string
  /** What may be reached where a phase says nothing of its own. */
  readonly network: HarborNetwork
}

/** `open`: the format gives the whole internet. A sandbox has package mirrors, and what the caller of a run allows beyond them. */
export type HarborNetwork = 'open' | NetworkPolicy

/** What the agent and the verifier each may have of their own. */
export interface HarborPhase {
  readonly timeoutMs?: number
  readonly user?: string
  /** Default: the environment's. */
  readonly network?: HarborNetwork
}

/** Files for one directory of the sandbox, one of them the program. */
export interface HarborScript {
  readonly files: readonly HarborFile[]
  readonly env: Readonly<Record<string, string>>
}

export interface HarborFile {
  /** Below the directory. */
  readonly name: string
  /** On this machine. */
  readonly path: string
}

export interface HarborVerifier extends HarborPhase, HarborScript {
  readonly timeoutMs: number
  /** It runs in an environment of its own, which has `/tests`, and gets these files of the agent's. Default: where the agent ran. */
  readonly separate?: {
    readonly environment: HarborEnvironment
    readonly artifacts: HarborArtifacts
  }
}

/** Absolute paths in the sandbox, each with the patterns of what is left out of it. */
export type HarborArtifacts = readonly {
  readonly path: string
  readonly exclude: readonly string[]
}[]

export interface HarborSteps {
  readonly list: readonly HarborStep[]
  /** How the rewards of the steps become one: the mean of each by name, or what the last step gave. */
  readonly reward: 'mean' | 'final'
}

export interface HarborStep {
  readonly name: string
  readonly instruction: string
  readonly agent: HarborPhase
  readonly verifier: HarborVerifier
  readonly solution?: HarborScript
  /** Files for the working directory before it begins; a `setup.sh` among them is run. */
  readonly workdir: readonly HarborFile[]
  /** Below it the steps that follow are not run. By name of the reward. */
  readonly minReward: Readonly<Record<string, number>>
}
