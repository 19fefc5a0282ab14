import { isDeepStrictEqual } from 'node:util'
import type { Engine } from '@sandlot/engine'
import { completeResources, idOf, SandlotError, type TemplateCreate } from '@sandlot/protocol'
import {
  type BuildWait,
  type ImageStore,
  isUnreadableRecord,
  type PinnedImage,
  type ResolveId,
  SharedBuilds,
} from '@sandlot/runtime'
import type { Logger } from 'pino'
import { z } from 'zod'
import { decodeJson, encodeJson } from '../json.ts'
import { kvRecords } from '../kv-records.ts'
import { createNameLock } from '../name-lock.ts'
import { type TemplateRecord, templateId, templateRecord } from './record.ts'

const PREFIX = 'template/'
const templateIdSchema = idOf('template')

/** Snapshots of the memory of templates. */
export interface TemplateMemory {
  /** Starts what a template's memory holds in a sandbox over an image, waits until it is ready and saves it. Returns the snapshot's id. */
  save(wanted: WantedMemory, wait: MemoryWait): Promise<string>
  has(project: string, snapshot: string): boolean
  /** Whether sandboxes can start from it on this machine, as it is now. */
  isRestorable(project: string, snapshot: string): Promise<boolean>
  /** Sandboxes are about to start from it. */
  announce(project: string, snapshot: string): void
  /** Removes one that nothing uses. */
  drop(project: string, snapshot: string): Promise<void>
}

export interface WantedMemory {
  readonly project: string
  /** Id of the template. */
  readonly template: string
  readonly image: string
  readonly input: TemplateCreate
}

export interface MemoryWait {
  readonly signal: AbortSignal
  readonly onLog: (line: string) => void
}

export interface TemplatesOptions {
  readonly engine: Engine
  readonly images: ImageStore
  readonly memory: TemplateMemory
  /** The image that an id of a snapshot or a template stands for. */
  readonly imageOf: (project: string, id: string) => Promise<string>
  /** An image was built for a project, or found. */
  readonly onImage: (project: string, image: string) => Promise<void>
  readonly now: () => number
  readonly log: Pick<Logger, 'error'>
}

/**
 * The prepared environments. Each keeps its image from being removed. A record is written when everything it names is there, so one that
 * is found can be started from. A name is that of the one which was prepared under it last: the one that had it before goes on without.
 */
export class Templates {
  readonly #options: TemplatesOptions
  readonly #pins = new Map<string, PinnedImage>()
  /** The snapshot of each that has one. */
  readonly #snapshots = new Map<string, string>()
  /** By project and name, the id. */
  readonly #names = new Map<string, string>()
  readonly #naming = createNameLock()
  readonly #saving = new SharedBuilds<TemplateRecord>()

  private constructor(options: TemplatesOptions) {
    this.#options = options
  }

  /** A template whose image or memory is gone, by another hand than this daemon's, is forgotten. */
  static async open(options: TemplatesOptions): Promise<Templates> {
    const templates = new Templates(options)
    for await (const record of templates.#all('')) {
      if (await templates.#stays(record)) templates.#setName(record)
      else await templates.#forget(record)
    }
    return templates
  }

  /** Prepares, or finds what is prepared. Fails as a build does, or as the start of what a memory snapshot holds. */
  async prepare(project: string, input: TemplateCreate, wait: BuildWait): Promise<TemplateRecord> {
    const record = await this.#prepared(project, input, wait)
    if (record.snapshot !== undefined) this.#options.memory.announce(project, record.snapshot)
    return record
  }

  /** By id, or else by name. Throws `template_unknown`. */
  async get(project: string, idOrName: string): Promise<TemplateRecord> {
    const isId = templateIdSchema.safeParse(idOrName).success
    const id = isId ? idOrName : this.named(project, idOrName)
    const found = id === undefined ? undefined : await this.find(project, id)
    if (found) return found
    const shown = JSON.stringify(idOrName.slice(0, 64))
    throw new SandlotError('template_unknown', `there is no template ${shown}`)
  }

  /** Id of the one of a name. */
  named(project: string, name: string): string | undefined {
    return this.#names.get(nameKey(project, name))
  }

  async find(project: string, id: string): Promise<TemplateRecord | undefined> {
    const entry = await this.#options.engine.kv.get(keyOf(project, id))
    // What another version wrote and this one can't read is prepared again.
    return entry && templateRecord.safeParse(decodeJson(entry.value)).data
  }

  /** Oldest first. */
  async list(project: string): Promise<readonly TemplateRecord[]> {
    const records = await Array.fromAsync(this.#all(`${project}/`))
    return records.sort((a, b) => a.createdAtMs - b.createdAtMs || (a.id < b.id ? -1 : 1))
  }

  /**
   * Forgets a template; its image stays until it is removed or collected, its memory until no run starts from it. Throws
   * `template_unknown`.
   */
  async remove(project: string, idOrName: string): Promise<TemplateRecord> {
    const record = await this.get(project, idOrName)
    await this.#forget(record)
    if (record.snapshot !== undefined) await this.#options.memory.drop(project, record.snapshot)
    return record
  }

  /** The template whose memory a snapshot is. */
  madeOf(snapshot: string): string | undefined {
    const found = [...this.#snapshots].find(([, each]) => each === snapshot)
    return found?.[0].split('/').at(-1)
  }

  /** Whether one of the project keeps an image. */
  hasImage(project: string, image: string): boolean {
    const prefix = keyOf(project, '')
    return [...this.#pins].some(
      ([key, pinned]) => key.startsWith(prefix) && pinned.image.id === image,
    )
  }

  /** Id of a template that keeps an image. */
  keeperOf(image: string): string | undefined {
    const found = [...this.#pins].find(([, pinned]) => pinned.image.id === image)
    return found?.[0].split('/').at(-1)
  }

  async #prepared(
    project: string,
    input: TemplateCreate,
    wait: BuildWait,
  ): Promise<TemplateRecord> {
    // Nothing is built for what nothing could start from.
    completeResources(input.resources)
    const resolveId: ResolveId = (id) => this.#options.imageOf(project, id)
    const image = await this.#options.images.build(input.source, { ...wait, project, resolveId })
    await this.#options.onImage(project, image.id)
    const id = templateId(project, image.id, input)
    const found = await this.find(project, id)
    if (found && (await this.#keep(found)) && (await this.#isRestorable(found))) {
      return await this.#named(found, input)
    }
    const saved = await this.#saving.run(id, wait, async ({ signal, log }) => {
      const kind = input.snapshot ?? 'filesystem'
      const snapshot =
        kind === 'memory'
          ? await this.#options.memory.save(
              { project, template: id, image: image.id, input },
              { signal, onLog: log },
            )
          : undefined
      return await this.#save({
        id,
        project,
        kind,
        image: image.id,
        ...(snapshot === undefined ? {} : { snapshot }),
        ...(input.resources ? { resources: input.resources } : {}),
        ...(input.name === undefined ? {} : { name: input.name }),
        tags: input.tags ?? {},
        createdAtMs: this.#options.now(),
      })
    })
    // Somebody else may have begun it, under another name.
    return await this.#named(saved, input)
  }

  async #isRestorable({ project, snapshot }: TemplateRecord): Promise<boolean> {
    return snapshot === undefined || (await this.#options.memory.isRestorable(project, snapshot))
  }

  async *#all(below: string): AsyncGenerator<TemplateRecord> {
    for await (const value of kvRecords(this.#options.engine.kv, PREFIX + below, z.unknown())) {
      const { data: record } = templateRecord.safeParse(value)
      if (record) yield record
    }
  }

  async #named(record: TemplateRecord, { name, tags }: TemplateCreate): Promise<TemplateRecord> {
    const named = { ...record, ...(name === undefined ? {} : { name }), ...(tags ? { tags } : {}) }
    return isDeepStrictEqual(named, record) ? record : await this.#save(named)
  }

  async #save(record: TemplateRecord): Promise<TemplateRecord> {
    if (!(await this.#keep(record))) throw overtaken(record)
    const { project, id, name } = record
    return await this.#naming.with(project, async () => {
      // First it is nobody's: never have two the same name.
      const before = name === undefined ? undefined : this.named(project, name)
      if (before !== undefined && before !== id) await this.#takeName(project, before)
      await this.#put(record)
      this.#setName(record)
      return record
    })
  }

  async #takeName(project: string, id: string): Promise<void> {
    const record = await this.find(project, id)
    if (!record) return
    const { name: _, ...nameless } = record
    await this.#put(nameless)
  }

  async #put(record: TemplateRecord): Promise<void> {
    const { kv } = this.#options.engine
    await kv.put(keyOf(record.project, record.id), encodeJson(record))
  }

  /** The name that it had before is nobody's now. */
  #setName({ project, id, name }: TemplateRecord): void {
    for (const [key, other] of this.#names) if (other === id) this.#names.delete(key)
    if (name !== undefined) this.#names.set(nameKey(project, name), id)
  }

  /** As `#keep`. An image whose record can't be read is no less there: starts from it say which file is damaged, until it is mended. */
  async #stays(record: TemplateRecord): Promise<boolean> {
    try {
      return await this.#keep(record)
    } catch (error) {
      if (!isUnreadableRecord(error)) throw error
      const { id: template } = record
      this.#options.log.error(
        { template, why: error.message },
        'the image of a template is damaged',
      )
      return true
    }
  }

  /** False where its image or its memory is gone. */
  async #keep({ project, id, image, snapshot }: TemplateRecord): Promise<boolean> {
    const key = keyOf(project, id)
    if (snapshot !== undefined) {
      if (!this.#options.memory.has(project, snapshot)) return false
      this.#snapshots.set(key, snapshot)
    }
    if (this.#pins.has(key)) return true
    if (!(await this.#options.images.find(image))) return false
    const pinned = await this.#options.images.pin(image)
    if (this.#pins.has(key)) pinned[Symbol.dispose]()
    else this.#pins.set(key, pinned)
    return true
  }

  async #forget({ name: _, ...record }: TemplateRecord): Promise<void> {
    const key = keyOf(record.project, record.id)
    await this.#options.engine.kv.delete(key)
    this.#setName(record)
    this.#pins.get(key)?.[Symbol.dispose]()
    this.#pins.delete(key)
    this.#snapshots.delete(key)
  }
}

/** Somebody removed what it is made of before it was there. */
function overtaken({ kind, image, snapshot }: TemplateRecord): SandlotError {
  const what = kind === 'memory' ? `its memory (${snapshot}) or its image` : `its image ${image}`
  const message = `${what} was removed while the template was prepared`
  return new SandlotError('template_unknown', message, { hint: 'Prepare it again.' })
}

function nameKey(project: string, name: string): string {
  return JSON.stringify([project, name])
}

function keyOf(project: string, id: string): string {
  return `${PREFIX}${project}/${id}`
}
