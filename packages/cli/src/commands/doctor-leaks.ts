/** `sandlot doctor leaks`: what sandboxes left on this machine that nobody owns, and its removal. */
import { existsSync } from 'node:fs'
import { Failure, Mistake } from '../failure.ts'
import { formatTable } from '../output/table.ts'
import { note, printJson, printLine } from '../output/terminal.ts'
import { given } from './options.ts'

export interface DoctorLeaksOptions {
  readonly remove?: boolean
  /** Also sandboxes that wait for their daemon. */
  readonly waiting?: boolean
  readonly runDirectory?: string
  readonly dataDirectory?: string
  readonly json?: boolean
}

/** One thing that was found, as it is printed. */
interface Row {
  /** `owned` by a daemon that runs, `waiting` for one, or `left`; after a removal `removed` or `stuck`. */
  readonly state: 'owned' | 'waiting' | 'left' | 'removed' | 'stuck'
  readonly kind: string
  readonly what: string
}

/** Returns 0 where nothing is left. */
export async function doctorLeaksCommand(options: DoctorLeaksOptions): Promise<number> {
  const { remove = false, waiting = false, json, runDirectory, dataDirectory } = options
  checkRoot()
  if (waiting && !remove) {
    throw new Mistake('--waiting is about what is removed', 'say --remove with it')
  }
  for (const path of [runDirectory, dataDirectory]) {
    if (path !== undefined && !existsSync(path)) {
      throw new Mistake(
        `${path} is not there`,
        'check the path, or leave it out to look everywhere',
      )
    }
  }
  const { surveyLeaks } = await import('@sandlot/server')
  const { drivers, others } = await surveyLeaks(given({ runDirectory, dataDirectory }))
  const rows: Row[] = []
  for (const { stateDirectory, owner, ...driver } of drivers) {
    if (owner !== undefined) {
      rows.push({ state: 'owned', kind: 'daemon', what: `process ${owner}: ${stateDirectory}` })
      continue
    }
    const stuck = remove ? await driver.remove({ waiting }) : []
    for (const id of driver.waiting) {
      const isStuck = stuck.some(({ what }) => what.includes(id))
      const state = waiting && remove ? (isStuck ? 'stuck' : 'removed') : 'waiting'
      rows.push({ state, kind: 'sandbox', what: `${stateDirectory}/b/${id}` })
    }
    rows.push(...driver.left.map((each) => rowOf(each, remove, stuck)))
  }
  const stuck: Found[] = []
  for (const each of remove ? others : []) if (!(await each.remove())) stuck.push(each)
  rows.push(...others.map((each) => rowOf(each, remove, stuck)))
  const clean = rows.every(({ state }) => state !== 'left' && state !== 'stuck')
  if (json) printJson({ ok: clean, found: rows })
  else say(rows, clean)
  return clean ? 0 : 1
}

interface Found {
  readonly kind: string
  readonly what: string
}

function rowOf({ kind, what }: Found, remove: boolean, stuck: readonly Found[]): Row {
  const isStuck = stuck.some((each) => each.kind === kind && each.what === what)
  return { state: remove ? (isStuck ? 'stuck' : 'removed') : 'left', kind, what }
}

function say(rows: readonly Row[], clean: boolean): void {
  if (rows.length > 0) {
    printLine(
      formatTable(
        ['', 'WHAT', 'WHERE'],
        rows.map(({ state, kind, what }) => [state, kind, what]),
      ),
    )
  }
  const is = (state: Row['state']) => rows.some((row) => row.state === state)
  if (is('waiting')) {
    note(
      'sandboxes that wait are adopted when their daemon is started again, and end by themselves when it is not; `--remove --waiting` ends them now',
    )
  }
  if (is('left')) note('`sandlot doctor leaks --remove` removes what is left')
  if (is('stuck'))
    note('what is stuck is tried again by the next call; a restart of the machine frees it')
  if (clean) note('nothing is left that nobody owns')
}

function checkRoot(): void {
  if (process.getuid?.() === 0) return
  throw new Failure(
    'whose a process or a cgroup is can only be seen by root',
    'run it as root: sudo ./sandlot doctor leaks',
  )
}
