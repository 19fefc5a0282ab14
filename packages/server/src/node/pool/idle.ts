import { cpus } from 'node:os'

/** Tells how many processors had nothing to do since it was asked last; the first time as many as there are. */
export function watchIdleProcessors(): () => number {
  let before = new Map<number, Times>()
  return () => {
    const now = new Map(cpus().map(({ times }, index) => [index, sum(times)]))
    const idle = [...now].map(([index, { idle, all }]) => {
      const { idle: idleBefore = 0, all: allBefore = all } = before.get(index) ?? {}
      return all > allBefore ? (idle - idleBefore) / (all - allBefore) : 1
    })
    before = now
    return idle.reduce((total, each) => total + each, 0)
  }
}

interface Times {
  readonly idle: number
  readonly all: number
}

function sum(times: Readonly<Record<string, number>> & { readonly idle: number }): Times {
  return { idle: times.idle, all: Object.values(times).reduce((total, each) => total + each, 0) }
}
