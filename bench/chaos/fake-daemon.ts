/** A daemon on the fake driver in a process of its own: `node fake-daemon.ts OPTIONS` (JSON). Says `{ url, apiKey }`; ends with its stdin. */
import { FakeDriver } from '@sandlot/runtime'
import { startDaemon } from '@sandlot/server'
import { fakeActs } from './fake-acts.ts'

const driver = new FakeDriver({ script: fakeActs })
const daemon = await startDaemon({ ...JSON.parse(process.argv[2] ?? '{}'), driver })
process.stdout.write(`${JSON.stringify({ url: daemon.url, apiKey: daemon.apiKey })}\n`)
process.stdin.resume()
process.stdin.once('end', () => void daemon.close())
