import type { NetworkPhase } from '@sandlot/protocol'

/** What a coordinator asks of a node for the worlds of a sandbox. */
export interface OpenGradeWorldRequest {
  readonly sandbox: string
  /** Default `grade`. */
  readonly world?: GraderWorld
  /** Default `main`. */
  readonly shows?: WorldShows
  /** `main` lives on beside it. Default: it is ended for certain before. */
  readonly beside?: boolean
}

/** What `main` left over its image, that image alone, or another image. */
export type WorldShows = 'main' | 'image' | { readonly image: string }

/** `control`: where a grader that gave no verdict is tried on the image alone. `step…`: where one step is graded while `main` lives on. */
export type GraderWorld = 'grade' | 'control' | StepWorld
export type StepWorld = `step${string}`

export interface EnterPhaseRequest {
  readonly sandbox: string
  readonly phase: NetworkPhase
  /** Default `main`. */
  readonly world?: 'main' | GraderWorld
}

export interface EndWorldRequest {
  readonly sandbox: string
  readonly world: StepWorld
}

/** Files and directories of `main` for another world, each at its own path there. */
export interface PassFilesRequest {
  readonly sandbox: string
  readonly world: GraderWorld
  /** Absolute. What isn't there is not missed. */
  readonly paths: readonly string[]
}

/** The world that a name of a guest's is, if it is a grader's. */
export function graderWorldOf(name: string): GraderWorld | undefined {
  if (name === 'grade' || name === 'control') return name
  return name.startsWith('step') ? (name as StepWorld) : undefined
}
