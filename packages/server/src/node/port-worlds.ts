import type { NetworkPhase } from '@sandlot/protocol'

/** What a coordinator asks of a node for the worlds of a sandbox. */
export interface OpenGradeWorldRequest {
  readonly sandbox: string
  /** Default `grade`. */
  readonly world?: GraderWorld
  /** Default `main`. */
  readonly shows?: 'main' | 'image'
}

/** `control`: where a grader that gave no verdict is tried on the image alone. */
export type GraderWorld = 'grade' | 'control'

export interface EnterPhaseRequest {
  readonly sandbox: string
  readonly phase: NetworkPhase
  /** Default `main`. */
  readonly world?: 'main' | GraderWorld
}
