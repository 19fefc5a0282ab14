import { argvOf, type Command, newId, SandlotError } from '@sandlot/protocol'
import { type ExecHandle, type ExecResult, GuestError } from '@sandlot/runtime'
import type { Lent } from '../node/lend.ts'

/** What a template's memory holds, running. Disposed, it goes on, and nobody reads it. */
export interface Started extends Disposable {
  /** The last that it said. */
  said(): string
  /** How it ended; undefined while it runs, or where there is none. */
  readonly ended: ExecResult | undefined
}

const SAID_CHARS = 2_000

/** Begins a command as all commands of the sandbox are, and resolves once it runs. */
export async function beginStart(
  lent: Lent,
  command: Command | undefined,
  signal: AbortSignal,
): Promise<Started> {
  if (command === undefined) return { said: () => '', ended: undefined, [Symbol.dispose]() {} }
  const handle = lent.guest.exec.start(
    {
      ...{ world: 'main', exec: newId('exec'), stdin: false, mode: 'stream' },
      argv: argvOf(command),
      env: Object.entries(lent.env),
      cwd: lent.workdir,
      user: lent.user,
    },
    { signal },
  )
  const started = new Reading(handle)
  try {
    await handle.started
    return started
  } catch (error) {
    if (!(error instanceof GuestError)) throw await lent.explain(error)
    throw new SandlotError('exec_failed', `start did not begin: ${error.message}`, { cause: error })
  }
}

class Reading implements Started {
  readonly #handle: ExecHandle
  #text = ''
  ended: ExecResult | undefined

  constructor(handle: ExecHandle) {
    this.#handle = handle
    handle.started.catch(() => {})
    handle.result.then(
      (result) => {
        this.ended = result
      },
      () => {},
    )
    void this.#read().catch(() => {})
  }

  said(): string {
    return this.#text.trim()
  }

  [Symbol.dispose](): void {
    this.#handle.detach()
  }

  async #read(): Promise<void> {
    const decoder = new TextDecoder()
    for await (const { bytes } of this.#handle.output) {
      const text = this.#text + decoder.decode(bytes, { stream: true })
      this.#text = text.slice(-SAID_CHARS)
    }
  }
}
