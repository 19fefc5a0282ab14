/**
 * A worker in a process of its own: `node worker.ts NAME IMAGE TASKS`. Its episodes write the word that tells who ran them; it says a
 * line for each that it begins.
 */
import process from 'node:process'
import { workOn } from './work.ts'

const [name = '', from = '', count = '0'] = process.argv.slice(2)
const { Sandlot } = await import('sandlot')
await using client = new Sandlot()
await workOn(client, { name, from, count: Number(count), who: 'child' }, (key) =>
  process.stdout.write(`${key}\n`),
).wait()
