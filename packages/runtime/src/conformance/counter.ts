import { expect } from 'vitest'
import type { Sandbox } from '../driver.ts'
import { shell, shellSpec } from './harness.ts'
import { SHELL } from './shell-texts.ts'

/** A program with state, an open file and a loopback server that tells how far it is: a step each hundredth of a second. */
export async function startCounter(sandbox: Sandbox): Promise<void> {
  const { started } = sandbox.guest.exec.start({
    ...shellSpec(SHELL.counter),
    exec: 'counter',
    mode: 'buffered',
    stdin: false,
  })
  await started
  await expect.poll(() => askCounter(sandbox).catch(() => 0)).toBeGreaterThan(0)
}

export async function askCounter(sandbox: Sandbox): Promise<number> {
  return Number((await shell(sandbox, SHELL.askCounter)).stdout)
}
