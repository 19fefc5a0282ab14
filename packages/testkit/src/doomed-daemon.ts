/** A daemon that starts sandboxes, says so, and waits for its death. Its argument: `{ options, specs }` as JSON. */
import { GvisorDriver, type GvisorOptions, type SandboxSpec } from '@sandlot/runtime'

const { options, specs } = JSON.parse(process.argv[2] ?? '') as {
  options: GvisorOptions
  specs: SandboxSpec[]
}
const driver = new GvisorDriver(options)
for (const spec of specs) {
  const { guest } = await driver.create(spec)
  await guest.files.write('main', '/left', Buffer.from(spec.id))
}
await driver.createBlank()
process.stdout.write('ready\n')
setInterval(() => {}, 60_000)
