/** The variables of one stage: `ARG`s declared so far, and what `ENV` set over them. */
import type { Lookup, Word } from './words.ts'

/** What a build of Docker gives to every Dockerfile that declares them. */
const PLATFORM: Readonly<Record<string, string>> = {
  TARGETPLATFORM: 'linux/amd64',
  TARGETOS: 'linux',
  TARGETARCH: 'amd64',
  TARGETVARIANT: '',
  BUILDPLATFORM: 'linux/amd64',
  BUILDOS: 'linux',
  BUILDARCH: 'amd64',
  BUILDVARIANT: '',
}

export class Variables {
  readonly #given: Readonly<Record<string, string>>
  readonly #outer: Variables | undefined
  /** Null where one is declared and nobody gave it a value. */
  readonly #arguments = new Map<string, Word | null>()
  readonly #environment: Map<string, Word>
  /** False where the base has no variables of its own. */
  readonly #baseHasOthers: boolean

  /**
   * `outer` holds the `ARG`s before the first `FROM`; a stage sees them only where it declares them again. `base` is the stage that
   * this one begins with: its `ENV` goes on.
   */
  constructor(
    given: Readonly<Record<string, string>>,
    options: { outer?: Variables; base?: Variables | undefined; baseHasOthers: boolean },
  ) {
    this.#given = given
    this.#outer = options.outer
    const { base } = options
    this.#environment = new Map(base ? base.#environment : [])
    this.#baseHasOthers = base ? base.#baseHasOthers : options.baseHasOthers
  }

  declare(name: string, standard: Word | undefined): void {
    const given = this.#given[name]
    const before = this.#outer ? this.#outer.#arguments.get(name) : undefined
    const platform = PLATFORM[name]
    const otherwise = standard ?? before ?? (platform === undefined ? null : [platform])
    this.#arguments.set(name, given === undefined ? otherwise : [given])
  }

  set(name: string, value: Word): void {
    // What hangs on the base is asked of the daemon again by name: it has it from the step that set it.
    this.#environment.set(
      name,
      value.every((part) => typeof part === 'string') ? value : [{ open: name }],
    )
  }

  readonly lookup: Lookup = (name) => {
    const value = this.#environment.get(name) ?? this.#arguments.get(name)
    return value === undefined && !this.#baseHasOthers ? null : value
  }

  /** The `ARG`s as variables of a command; `ENV` outranks them. */
  forCommand(): Readonly<Record<string, string>> | undefined {
    const entries = [...this.#arguments]
      .map(([name, value]) => [name, value?.join('') ?? ''] as const)
      .filter(([name, value]) => !this.#environment.has(name) && value !== '')
    return entries.length > 0 ? Object.fromEntries(entries) : undefined
  }

  declares(name: string): boolean {
    return this.#arguments.has(name)
  }
}
