import { idKind } from '@sandlot/protocol'
import type { MemoryRecord, SnapshotRecord } from './snapshots/record.ts'
import type { TemplateRecord } from './templates/record.ts'

/** What an id in `from` stands for. */
export interface StartPoint {
  /** Id of the image whose files a start has. */
  readonly image: string
  /** Of a template: what a start has unless the request says otherwise. */
  readonly resources?: TemplateRecord['resources']
  /** What is restored, in place of a start from the image. */
  readonly memory?: SavedMemory
}

/** The memory of a snapshot, and what its starts have. */
export type SavedMemory = Omit<MemoryRecord, 'runtime' | 'cpuFeatures'>

/** What has ids of its own beside images. Each fails with an error of its own where there is none. */
export interface StartPointSources {
  readonly template: (project: string, id: string) => Promise<TemplateRecord>
  readonly snapshot: (project: string, id: string) => Promise<SnapshotRecord>
}

/** Turns an id of an image, a snapshot or a template into an image before anything else is decided. */
export class StartPoints {
  readonly #sources: StartPointSources

  constructor(sources: StartPointSources) {
    this.#sources = sources
  }

  /** Whether an image of this id exists is found out when it is used. Fails with `template_unknown` or `snapshot_unknown`. */
  async resolve(project: string, from: string): Promise<StartPoint> {
    const kind = idKind(from)
    if (kind === 'template') {
      const { image, resources, snapshot } = await this.#sources.template(project, from)
      if (snapshot !== undefined) return pointOf(await this.#sources.snapshot(project, snapshot))
      return { image, ...(resources ? { resources } : {}) }
    }
    if (kind !== 'snapshot') return { image: from }
    return pointOf(await this.#sources.snapshot(project, from))
  }

  /** The image alone, for builds over it: no processes are in it, and of a template nothing that those wrote. */
  async image(project: string, from: string): Promise<string> {
    if (idKind(from) === 'template') return (await this.#sources.template(project, from)).image
    return (await this.resolve(project, from)).image
  }
}

function pointOf({ image, memory }: SnapshotRecord): StartPoint {
  return { image, ...(memory ? { memory } : {}) }
}
