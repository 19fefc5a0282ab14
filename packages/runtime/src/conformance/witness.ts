import { expect } from 'vitest'
import type { Sandbox } from '../driver.ts'
import { readText, shell, shellSpec } from './harness.ts'

/**
 * A program that looks as fast as it can who the sandbox is: by name, in a file that it holds open, and in one that it has mapped. When that
 * changes it writes down what it sees, and how often it saw what was before. A look during which it changed doesn't count.
 */
const WITNESS = `
import mmap, os
held = os.open('/dev/sandlot-seed', os.O_RDONLY)
mapped = mmap.mmap(os.open('/etc/machine-id', os.O_RDONLY), 33, prot=mmap.PROT_READ)
seen, looks = None, 0
def read(path):
  with open(path, 'rb') as file: return file.read()
while True:
  seed = read('/dev/sandlot-seed')
  look = [seed, os.pread(held, 99, 0), read('/etc/machine-id'), mapped[:]]
  if read('/dev/sandlot-seed') != seed: continue
  if look != seen:
    with open('/seen', 'ab') as log: log.write(b' '.join(mark.strip() for mark in look) + b' %d\\n' % looks)
    seen, looks = look, 0
  looks += 1
  if not os.path.exists('/looked'): open('/looked', 'w').close()
`

/** Who a sandbox was, as its witness saw it. */
export interface Seen {
  readonly seed: string
  readonly machineId: string
  /** How often it saw what was before. */
  readonly looksBefore: number
}

export async function startWitness(sandbox: Sandbox): Promise<void> {
  const argv = ['python3', '-c', WITNESS]
  const spec = { ...shellSpec(''), argv, exec: 'witness' }
  await sandbox.guest.exec.start({ ...spec, mode: 'buffered', stdin: false }).started
  await seenBy(sandbox)
}

/** All that it saw, after one more look: it may have been about to say so of the one before. */
export async function seenBy(sandbox: Sandbox): Promise<readonly Seen[]> {
  const look = 'rm -f /looked; while [ ! -e /looked ]; do sleep 0.01; done'
  await shell(sandbox, `${look}; ${look}`)
  const text = await readText(sandbox, 'main', '/seen')
  return text.trim().split('\n').map(parse)
}

function parse(line: string): Seen {
  const [seed = '', held, machineId = '', mapped, looksBefore] = line.split(' ')
  expect([held, mapped]).toEqual([seed, machineId])
  return { seed, machineId, looksBefore: Number(looksBefore) }
}
