import type { ExecView } from '@sandlot/protocol'
import type { Waiting } from '../connection/context.ts'
import { joinSignals } from '../connection/signals.ts'
import { attachPty, type Pty, type PtyAttachOptions, type PtyTarget } from './pty.ts'

/** The terminals of a sandbox: `sandbox.ptys`. They live in it, whoever reads them. */
export class Ptys {
  readonly #target: PtyTarget
  readonly #execs: (options: Waiting) => Promise<ExecView[]>
  readonly #signal: AbortSignal | undefined

  /** `signal` ends all that is read in it. */
  constructor(
    target: PtyTarget,
    execs: (options: Waiting) => Promise<ExecView[]>,
    signal: AbortSignal | undefined,
  ) {
    this.#target = target
    this.#execs = execs
    this.#signal = signal
  }

  /** Those that run, and the latest that ended. */
  async list(options: Waiting = {}): Promise<ExecView[]> {
    return (await this.#execs(options)).filter(({ terminal }) => terminal !== null)
  }

  /**
   * Takes a terminal over, whoever has it, also after a restart of the daemon. One that has ended shows what it kept, and its result.
   * `exec_unknown` where there is none of this id.
   */
  async attach(id: string, options: PtyAttachOptions = {}): Promise<Pty> {
    const joined = joinSignals(options.signal, this.#signal)
    const pty = attachPty(this.#target, id, { ...options, signal: joined.signal })
    const release = () => joined[Symbol.dispose]()
    pty.then(({ result }) => result.then(release, release), release)
    return await pty
  }

  /** Ends all that runs in a terminal, or sends it another signal. Tells how many processes that were: none of one that is over. */
  async kill(id: string, signal = 9): Promise<{ readonly processes: number }> {
    return await this.#target.kill(id, signal, undefined)
  }
}
