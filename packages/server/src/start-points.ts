import { idKind, type SnapshotKind } from '@sandlot/protocol'
import type { TemplateRecord } from './templates/record.ts'

/** What an id in `from` stands for. */
export interface StartPoint {
  /** Id of the image whose files a start has. */
  readonly image: string
  /** Of a template: what a start has unless the request says otherwise. */
  readonly resources?: TemplateRecord['resources']
  /** Id of the memory snapshot that is restored, in place of a start from the image. */
  readonly memory?: string
}

/** What has ids of its own beside images. Each fails with an error of its own where there is none. */
export interface StartPointSources {
  readonly template: (project: string, id: string) => Promise<TemplateRecord>
  readonly snapshot: (
    project: string,
    id: string,
  ) => Promise<{ readonly id: string; readonly kind: SnapshotKind; readonly image: string }>
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
      return {
        image,
        ...(resources ? { resources } : {}),
        ...(snapshot === undefined ? {} : { memory: snapshot }),
      }
    }
    if (kind !== 'snapshot') return { image: from }
    const snapshot = await this.#sources.snapshot(project, from)
    return {
      image: snapshot.image,
      ...(snapshot.kind === 'memory' ? { memory: snapshot.id } : {}),
    }
  }

  /** The image alone, for builds over it: a memory snapshot's processes are not in it. */
  async image(project: string, from: string): Promise<string> {
    return (await this.resolve(project, from)).image
  }
}
