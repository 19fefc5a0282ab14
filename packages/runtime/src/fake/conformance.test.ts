import { driverConformance } from '../conformance/driver.ts'
import { conformanceScript } from '../conformance/shell-texts.ts'
import { FakeDriver } from './driver.ts'
import { FakeMachine } from './machine.ts'

driverConformance({
  name: 'fake',
  layers: [{ digest: 'sha256:0', path: '/none' }],
  open: async () => {
    const machine = new FakeMachine()
    const daemon = () => new FakeDriver({ script: conformanceScript, machine })
    const driver = daemon()
    return {
      driver,
      directory: '/none',
      killFromOutside: async ({ hostId }) => driver.kill(hostId, 'lost'),
      orphan: async (specs) => {
        const doomed = daemon()
        for (const spec of specs) {
          const { guest } = await doomed.create(spec)
          await guest.files.write('main', '/left', Buffer.from(spec.id))
        }
        await doomed.createBlank()
        return daemon()
      },
      leaks: async () => machine.all().map(({ hostId }) => `sandbox ${hostId}`),
      close: async () => {},
    }
  },
})
