/** What is wrong with task folders, collected: who has a hundred of them wants to hear of all at once. */
import { SandlotError } from '@sandlot/protocol'

export interface HarborProblem {
  /** Relative to what was read. */
  readonly file: string
  /** Of a `task.toml`: `environment.gpus`. */
  readonly field?: string
  readonly problem: string
}

const SHOWN_MAX = 50

/** Of one folder. */
export class Problems {
  readonly list: HarborProblem[] = []
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
  }

  /** `file` is below the folder. */
  add(file: string, problem: string, field?: string): void {
    const whole = this.#folder === '' ? file : `${this.#folder}/${file}`
    this.list.push({ file: whole, problem, ...(field === undefined ? {} : { field }) })
  }
}

/** All that is wrong, as one refusal. `folders` is of how many. */
export function refusal(problems: readonly HarborProblem[], folders: number): SandlotError {
  const sorted = [...problems].sort((a, b) => (a.file < b.file ? -1 : a.file > b.file ? 1 : 0))
  const lines = sorted.slice(0, SHOWN_MAX).map(lineOf)
  const more = sorted.length - lines.length
  if (more > 0) lines.push(`and ${more} more`)
  const what = folders === 1 ? 'the task folder' : `${folders} task folders`
  return new SandlotError('invalid_request', [`${what} can't be run:`, ...lines].join('\n  '), {
    hint: 'Correct what the lines name, or leave those folders out. Nothing was started.',
    details: { problems: sorted },
  })
}

function lineOf({ file, field, problem }: HarborProblem): string {
  return `${file}: ${field === undefined ? '' : `${field}: `}${problem}`
}
