/** Keys that are for the command line itself, as of ssh: `~` at the beginning of a line, and then `.`, `?` or `~`. */

export interface Keys {
  /** What is typed in the sandbox. */
  readonly typed: Uint8Array
  /** `leave`, at last: let go of the terminal; what was typed behind it is nobody's. `help`: say which keys there are. */
  readonly asked: readonly Asked[]
}

type Asked = 'leave' | 'help'

const TILDE = 0x7e
const LINE_ENDS: ReadonlySet<number> = new Set([0x0a, 0x0d])
const ASKED = new Map<number, Asked>([
  [0x2e, 'leave'],
  [0x3f, 'help'],
])

/**
 * ```
 * line start ── ~ ──▶ escaped ── . or ? ──▶ asked
 *      ▲                 └─ ~: one is typed; anything else: both are ──▶ in a line
 *      └── end of a line ── in a line
 * ```
 */
export class EscapeKeys {
  #state: 'line start' | 'escaped' | 'in a line' = 'line start'

  /** What becomes of these keys. */
  press(keys: Uint8Array): Keys {
    const typed: number[] = []
    const asked: Asked[] = []
    for (const key of keys) {
      const before = this.#state
      if (before === 'escaped') {
        const wanted = ASKED.get(key)
        this.#state = wanted ? 'line start' : 'in a line'
        if (wanted) asked.push(wanted)
        if (wanted === 'leave') break
        if (wanted) continue
        typed.push(TILDE)
        if (key === TILDE) continue
      } else if (before === 'line start' && key === TILDE) {
        this.#state = 'escaped'
        continue
      }
      typed.push(key)
      this.#state = LINE_ENDS.has(key) ? 'line start' : 'in a line'
    }
    return { typed: Uint8Array.from(typed), asked }
  }
}
