/**
 * Images of many layers get another form with few, from which sandboxes start faster. Nobody waits for it: an image is there with all its
 * layers at once, and is started so until the other form is there too.
 */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { SHARE_ENV, Worker } from 'node:worker_threads'
import { acquireFileLock } from './file-lock.ts'
import type { Image, ImageLayer } from './image.ts'
import type { ImageFiles } from './image-files.ts'
import type { JoinRequest } from './join-thread.ts'
import { imageLimits } from './limits.ts'
import { publishImage } from './publish.ts'

export interface LayerJoinerOptions {
  readonly files: ImageFiles
  readonly now: () => number
  /** Default: on a thread of its own. */
  readonly join?: (request: JoinRequest, signal: AbortSignal) => Promise<readonly ImageLayer[]>
}

/**
 * One is joined at a time, each once, over all processes of the machine. The result is an image of its own that no list shows, and that
 * goes with the one that it is a form of. A process that is killed leaves nothing of it; the next start of the image asks again.
 */
export class LayerJoiner {
  readonly #options: LayerJoinerOptions
  readonly #closing = new AbortController()
  /** Waiting, or under way. */
  readonly #wanted = new Map<string, Image>()
  /** When it failed last: on a full disk it would fail at every start. */
  readonly #failedAtMs = new Map<string, number>()
  #working: Promise<void> | undefined

  constructor(options: LayerJoinerOptions) {
    this.#options = options
  }

  /** The form with few layers, where it is there. */
  async find(id: string): Promise<Image | undefined> {
    return await this.#options.files.findByKey(keyOf(id))
  }

  /** Not waited for. */
  joinSoon(image: Image): void {
    const failedAtMs = this.#failedAtMs.get(image.id) ?? 0
    const isVain = Date.now() - failedAtMs < imageLimits.joinAgainMs
    if (isVain || this.#closing.signal.aborted || this.#wanted.has(image.id)) return
    this.#wanted.set(image.id, image)
    this.#working ??= this.#work().finally(() => {
      this.#working = undefined
    })
  }

  /** Resolves when nothing is under way any more. */
  async idle(): Promise<void> {
    while (this.#working) await this.#working
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error('the image store is closing'))
    await this.#working
  }

  async #work(): Promise<void> {
    for (const [id, image] of this.#wanted) {
      try {
        await this.#join(image)
      } catch {
        this.#failedAtMs.set(id, Date.now())
      }
      this.#wanted.delete(id)
    }
  }

  async #join(image: Image): Promise<void> {
    const { files, now, join: joinOf = joinOnThread } = this.#options
    const key = keyOf(image.id)
    const late = AbortSignal.timeout(imageLimits.joinMs)
    const signal = AbortSignal.any([this.#closing.signal, late])
    using _lock = await acquireFileLock(files.lockPath(key), signal)
    if (await files.findByKey(key)) return
    await using temporary = await files.temporary(key)
    const { path: directory } = temporary
    const path = join(directory, 'joined.erofs')
    const layers = await joinOf({ layers: image.layers, path }, signal)
    const { config, source } = image
    const publishing = { files, directory, source, key, now, signal, intermediate: false }
    await publishImage({ layers, config }, { ...publishing, joinedOf: image.id })
  }
}

function keyOf(id: string): string {
  return createHash('sha256')
    .update(JSON.stringify(['joined', id]))
    .digest('hex')
}

async function joinOnThread(
  request: JoinRequest,
  signal: AbortSignal,
): Promise<readonly ImageLayer[]> {
  signal.throwIfAborted()
  const worker = new Worker(new URL('./join-thread.ts', import.meta.url), {
    workerData: request,
    execArgv: ['--disable-warning=ExperimentalWarning'],
    env: SHARE_ENV,
  })
  const { promise, resolve, reject } = Promise.withResolvers<readonly ImageLayer[]>()
  const abort = () => reject(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  worker.once('message', resolve)
  worker.once('error', reject)
  worker.once('exit', () => reject(new Error('the thread that joins layers ended')))
  try {
    return await promise
  } finally {
    signal.removeEventListener('abort', abort)
    await worker.terminate()
  }
}
