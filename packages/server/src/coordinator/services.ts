import type { RunServices } from './live-run.ts'

/** What the whole coordinator works with. */
export interface CoordinatorServices extends Omit<RunServices, 'finished' | 'failed'> {
  /** Digest of an image; undefined where there is none of this id. */
  imageDigest(image: string): Promise<string | undefined>
}
