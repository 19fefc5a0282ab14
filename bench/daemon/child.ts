/** A daemon in a process of its own: `node child.ts OPTIONS` (JSON). Says `{ url, apiKey }`; ends with its stdin. */
import { startDaemon } from '@sandlot/server'

const daemon = await startDaemon(JSON.parse(process.argv[2] ?? '{}'))
process.stdout.write(`${JSON.stringify({ url: daemon.url, apiKey: daemon.apiKey })}\n`)
process.stdin.resume()
process.stdin.once('end', () => void daemon.close())
