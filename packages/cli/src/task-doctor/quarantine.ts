/** The list of tasks that are not to be run as they are. */
import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { Mistake } from '../failure.ts'
import { CONDITIONS, type Diagnosis, isUnfit } from './diagnose.ts'

const quarantine = z.object({
  schema: z.literal(1),
  madeAt: z.string(),
  /** Trials of each role. */
  times: z.number(),
  tasks: z.array(
    z.object({
      key: z.string(),
      /** Of all that the task is made of: when it was mended, it is another one. */
      digest: z.string(),
      condition: z.enum(CONDITIONS),
      why: z.string(),
    }),
  ),
})
export type Quarantine = z.infer<typeof quarantine>
export type Quarantined = Quarantine['tasks'][number]

export function quarantineOf(
  diagnoses: readonly Diagnosis[],
  {
    times,
    madeAt,
    digestOf,
  }: {
    readonly times: number
    readonly madeAt: string
    readonly digestOf: (key: string) => string
  },
): Quarantine {
  const tasks = diagnoses.filter(isUnfit).map(({ key, findings }) => {
    const [worst] = findings
    if (!worst) throw new Error(`nothing was found about ${key}`)
    return { key, digest: digestOf(key), ...worst }
  })
  return { schema: 1, madeAt, times, tasks }
}

export async function readQuarantine(path: string): Promise<Quarantine> {
  const hint = 'Give a file that `sandlot doctor tasks --write` has written.'
  const text = await readFile(path, 'utf8').catch((cause) => {
    throw new Mistake(`--quarantine ${path} can't be read: ${(cause as Error).message}`, hint, {
      cause,
    })
  })
  try {
    return quarantine.parse(JSON.parse(text))
  } catch (cause) {
    throw new Mistake(`--quarantine ${path} is no list of tasks in quarantine`, hint, { cause })
  }
}

export interface Sorted<Task> {
  readonly fit: readonly Task[]
  readonly held: readonly { readonly task: Task; readonly entry: Quarantined }[]
  /** Listed, and another one since: it is run. */
  readonly changed: readonly Quarantined[]
}

/** Which tasks are held back, by key and content. */
export function sortOut<Task extends { readonly key: string; readonly digest: string }>(
  tasks: readonly Task[],
  { tasks: listed }: Quarantine,
): Sorted<Task> {
  const byKey = new Map(listed.map((entry) => [entry.key, entry]))
  const fit: Task[] = []
  const held: { task: Task; entry: Quarantined }[] = []
  const changed: Quarantined[] = []
  for (const task of tasks) {
    const entry = byKey.get(task.key)
    if (entry?.digest === task.digest) held.push({ task, entry })
    else {
      fit.push(task)
      if (entry) changed.push(entry)
    }
  }
  return { fit, held, changed }
}
