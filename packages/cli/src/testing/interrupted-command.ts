/** A command that waits for its interruption, and cleans up for as long as it is told. Run by the tests as a process of its own. */
import { argv, stdout } from 'node:process'
import { setTimeout as delay } from 'node:timers/promises'
import { interruption } from '../commands/interruption.ts'
import { pause } from '../commands/pause.ts'

const [, , cleanUpMs, graceMs] = argv
using interrupted = interruption({ graceMs: Number(graceMs) })
stdout.write('ready\n')
try {
  await pause(1e8, interrupted.signal)
} catch (error) {
  stdout.write(`${(error as Error).name}\n`)
  await delay(Number(cleanUpMs))
  stdout.write('clean\n')
}
