/** A daemon that starts sandboxes, says so, and waits for its death. Its argument: `{ options, plans }` as JSON. */
import { GvisorDriver, type GvisorOptions } from '@sandlot/runtime'
import type { OrphanPlan } from './orphan-sandboxes.ts'

const { options, plans } = JSON.parse(process.argv[2] ?? '') as {
  options: GvisorOptions
  plans: OrphanPlan[]
}
const driver = new GvisorDriver(options)
const sandboxes = await Promise.all(plans.map(({ spec }) => driver.create(spec)))
const blanks = [await driver.createBlank()]
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
for (const [index, sandbox] of sandboxes.entries()) {
  const { layers, limits } = sandbox.spec
  const directory = plans[index]?.restored
  if (directory === undefined) continue
  await driver.checkpoint(sandbox, directory, { leaveRunning: true })
  blanks.push(await driver.createBlank({ checkpoint: { directory, layers, limits } }))
}
for (const [index, { guest }] of sandboxes.entries()) {
  if (plans[index]?.frozen) await guest.freeze()
}
process.stdout.write(`${JSON.stringify([...sandboxes, ...blanks].map(({ hostId }) => hostId))}\n`)
setInterval(() => {}, 60_000)
