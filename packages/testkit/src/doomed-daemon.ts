/** A daemon that starts sandboxes, says so, and waits for its death. Its argument: `{ options, plans }` as JSON. */
import { GvisorDriver, type GvisorOptions } from '@sandlot/runtime'
import type { OrphanPlan } from './orphan-sandboxes.ts'

const { options, plans } = JSON.parse(process.argv[2] ?? '') as {
  options: GvisorOptions
  plans: OrphanPlan[]
}
const driver = new GvisorDriver(options)
const sandboxes = await Promise.all(plans.map(({ spec }) => driver.create(spec)))
const blank = await driver.createBlank()
for (const { id, guest } of sandboxes) await guest.files.write('main', '/left', Buffer.from(id))
for (const [index, { guest }] of sandboxes.entries()) {
  const shell = plans[index]?.shell
  if (shell === undefined) continue
  const command = guest.exec.start({
    world: 'main',
    exec: 'orphan',
    argv: ['/bin/sh', '-c', shell],
    env: [['PATH', '/usr/bin:/bin']],
    cwd: '/',
    stdin: false,
    mode: 'buffered',
  })
  command.result.catch(() => {})
  await command.started
}
for (const [index, { guest }] of sandboxes.entries()) {
  if (plans[index]?.frozen) await guest.freeze()
}
process.stdout.write(`${JSON.stringify([...sandboxes, blank].map(({ hostId }) => hostId))}\n`)
setInterval(() => {}, 60_000)
