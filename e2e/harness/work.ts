import type { Run, Sandlot } from 'sandlot'

export interface Work {
  readonly name: string
  readonly from: string
  readonly count: number
  /** Who works: ends up in the row's data. What `child` begins, it never ends. */
  readonly who: string
}

/** The same run, whichever process starts it or joins it. */
export function workOn(
  client: Sandlot,
  work: Work,
  onBegun: (key: string) => void = () => {},
): Run {
  const { name, from, count, who } = work
  return client.rollouts.map(
    Array.from({ length: count }, (_, id) => ({ id })),
    async ({ sandbox, task, key }) => {
      onBegun(key)
      await sandbox.exec(`echo ${task.id} >/answer${who === 'child' ? '; sleep 1000' : ''}`)
      return { data: who }
    },
    {
      ...{ name, from, concurrency: 2, version: '1' },
      grade: { run: 'test -s /answer' },
    },
  )
}
