/** A daemon on the fake driver in a process of its own: `node fake-daemon.ts OPTIONS` (JSON). Says `{ url, apiKey }`; ends with its stdin. */
import { FakeDriver } from '@sandlot/runtime'
import { startDaemon } from '@sandlot/server'
import { fakeActs } from './fake-acts.ts'
import { hostContainers } from './host-containers.ts'

const driver = new FakeDriver({ script: fakeActs })
const options = JSON.parse(process.argv[2] ?? '{}')
const at = { url: `http://127.0.0.1:${options.port}`, directory: options.dataDirectory }
const daemon = await startDaemon({
  ...options,
  driver,
  containers: (engine) => hostContainers(engine, at),
})
process.stdout.write(`${JSON.stringify({ url: daemon.url, apiKey: daemon.apiKey })}\n`)
process.stdin.resume()
process.stdin.once('end', () => void daemon.close())
