import { idKind, isStartId, parseStartName, SandlotError } from '@sandlot/protocol'
import type { MemoryRecord } from './snapshots/record.ts'
import type { UsedSnapshot } from './snapshots/snapshots.ts'
import type { TemplateRecord } from './templates/record.ts'

/** What an id or a name in `from` stands for. */
export interface StartPoint {
  /** Its id; that of an image, which may not be there. */
  readonly id: string
  /** Id of the image whose files a start has. */
  readonly image: string
  /** Of a template: what a start has unless the request says otherwise. */
  readonly resources?: TemplateRecord['resources']
  /** What is restored, in place of a start from the image. */
  readonly memory?: SavedMemory
}

/** Until disposed a snapshot that it stands for stays, whoever deletes it. */
export interface UsedStartPoint extends StartPoint, Disposable {}

/** The memory of a snapshot, and what its starts have. */
export type SavedMemory = Omit<MemoryRecord, 'runtime' | 'cpuFeatures'>

/** What has ids of its own beside images. */
export interface StartPointSources {
  /** By id or name. Each fails with an error of its own where there is none. */
  readonly template: (project: string, idOrName: string) => Promise<TemplateRecord>
  readonly snapshot: (project: string, idOrName: string) => Promise<UsedSnapshot>
  /** Whether there is one of this name. */
  readonly isTemplate: (project: string, name: string) => boolean
  readonly isSnapshot: (project: string, name: string) => boolean
  /** Fails with `image_unknown` for an image of another project. */
  readonly image: (project: string, id: string) => Promise<void>
}

/** Turns an id or a name of an image, a snapshot or a template into an image before anything else is decided. */
export class StartPoints {
  readonly #sources: StartPointSources

  constructor(sources: StartPointSources) {
    this.#sources = sources
  }

  /**
   * Whether an image of this id exists is found out when it is used. Fails with `image_unknown` for that of another project, `template_unknown`, `snapshot_unknown`, or
   * `invalid_request` for a name that both have.
   */
  async resolve(project: string, from: string): Promise<UsedStartPoint> {
    const { kind, name } = this.#parse(project, from)
    if (kind === 'image') {
      await this.#sources.image(project, name)
      return { id: name, image: name, [Symbol.dispose]() {} }
    }
    if (kind === 'snapshot') return pointOf(await this.#sources.snapshot(project, name))
    const { id, image, resources, snapshot } = await this.#sources.template(project, name)
    if (snapshot === undefined) {
      return { id, image, ...(resources ? { resources } : {}), [Symbol.dispose]() {} }
    }
    return { ...pointOf(await this.#memoryOf(project, name, snapshot)), id }
  }

  /** The image alone, for builds over it: no processes are in it, and of a template nothing that those wrote. */
  async image(project: string, from: string): Promise<string> {
    const { kind, name } = this.#parse(project, from)
    if (kind === 'template') return (await this.#sources.template(project, name)).image
    using start = await this.resolve(project, from)
    return start.image
  }

  async #memoryOf(project: string, template: string, snapshot: string): Promise<UsedSnapshot> {
    try {
      return await this.#sources.snapshot(project, snapshot)
    } catch (error) {
      if (!(error instanceof SandlotError && error.code === 'snapshot_unknown')) throw error
      const message = `the memory of the template ${JSON.stringify(template)} was deleted`
      throw new SandlotError('snapshot_unknown', message, { hint: 'Prepare the template again.' })
    }
  }

  #parse(project: string, from: string): { kind: 'image' | 'snapshot' | 'template'; name: string } {
    if (isStartId(from)) return { kind: idKind(from) as 'image', name: from }
    const named = parseStartName(from)
    if (named) return named
    const isSnapshot = this.#sources.isSnapshot(project, from)
    const isTemplate = this.#sources.isTemplate(project, from)
    if (isSnapshot && isTemplate) throw bothHaveIt(from)
    return { kind: isSnapshot ? 'snapshot' : isTemplate ? 'template' : 'image', name: from }
  }
}

function pointOf(used: UsedSnapshot): UsedStartPoint {
  const { id, image, memory } = used.record
  const stays = { [Symbol.dispose]: () => used[Symbol.dispose]() }
  return { id, image, ...(memory ? { memory } : {}), ...stays }
}

function bothHaveIt(name: string): SandlotError {
  const message = `${JSON.stringify(name)} is the name of a snapshot and of a template`
  return new SandlotError('invalid_request', message, {
    hint: `Say which: snapshot:${name} or template:${name}.`,
  })
}
