import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { findLeaks } from '@sandlot/testkit'
import { commandOf, processesWith } from '../processes.ts'
import type { DaemonSetting } from './daemon.ts'

/** What daemons of this setting left on the machine when all of them are over, one line each. */
export async function leftovers(setting: DaemonSetting): Promise<string[]> {
  const { dataDirectory, runDirectory, mark } = setting
  const names = await readdir(runDirectory)
  const states = names.filter((name) => name.startsWith('sandlot-'))
  const ofDrivers = await Promise.all(
    states.map((name) => findLeaks({ stateDirectory: join(runDirectory, name) })),
  )
  const processes = mark === undefined ? [] : processesWith(mark)
  const files = await readdir(dataDirectory, { recursive: true })
  const temporary = files.filter((name) => /\.part$|(^|\/)(tmp|incoming)\/./.test(name))
  return [
    ...ofDrivers.flat(),
    ...processes.map((pid) => `process ${pid}: ${commandOf(pid)}`),
    ...temporary.map((name) => `file ${name}`),
  ]
}
