import { formatSize } from '@sandlot/protocol'
import { type Health, Sandlot } from 'sandlot'

const ANSWER_MS = 2_000

/** What a daemon that runs has promised of its machine, as a finding; undefined where none answers. */
export async function findPromises(): Promise<PromisesFinding | undefined> {
  await using client = new Sandlot()
  const health = await client
    .health({ signal: AbortSignal.timeout(ANSWER_MS) })
    .catch(() => undefined)
  return health && promisesOf(health)
}

interface PromisesFinding {
  readonly name: string
  readonly ok: boolean
  readonly found: string
  readonly mend?: string
  readonly required: false
}

/** Requests are promised, limits are what all together could take: that may be more than there is. */
export function promisesOf({ load, nothingNew }: Health): PromisesFinding | undefined {
  if (!load) return undefined
  const { sandboxes, cpu, memory, overcommit } = load
  const found = [
    `${sandboxes} sandboxes were promised ${formatSize(memory.requests)} and ${cpu.requests} processors`,
    `limits ${formatSize(memory.limits)} (${overcommit.memory} × the memory) and ${cpu.limits} processors (${overcommit.cpu} ×)`,
    `${formatSize(memory.free)} of ${formatSize(memory.total)} free`,
  ].join('; ')
  const name = 'promises'
  if (nothingNew === undefined) return { name, ok: true, found, required: false }
  const mend = 'free what is short; sandboxes that wait are begun by themselves then'
  return { name, ok: false, found: `${nothingNew}; ${found}`, mend, required: false }
}
