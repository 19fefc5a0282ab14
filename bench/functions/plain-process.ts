/** A process that has the handler and nothing around it: a number a line in, a number a line out. */
import { createInterface } from 'node:readline'
import { double } from './double.ts'

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${double(Number(line))}\n`)
}
