/** A daemon in a process of its own, for tests that kill it or measure it: `node serve.ts OPTIONS`, as JSON. */
import { startDaemon } from '../daemon.ts'

const daemon = await startDaemon(JSON.parse(process.argv[2] ?? '{}'))
process.stdout.write(`${JSON.stringify({ url: daemon.url, apiKey: daemon.apiKey })}\n`)
