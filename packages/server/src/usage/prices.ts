/** What an hour of a machine's resources costs, as the operator says. */
import { readFileSync } from 'node:fs'
import { SandlotError } from '@sandlot/protocol'
import { z } from 'zod'
import type { Allocated } from './metered.ts'

const price = z.number().finite().nonnegative().max(1e6)

const priceTable = z
  .object({
    /** What the numbers are of: told beside each of them, and not interpreted. */
    currency: z.string().min(1).max(16),
    /** For an hour of one processor, and of a GiB of memory or of the machine’s disk. Default 0. */
    cpuHour: price.default(0),
    memoryGibHour: price.default(0),
    diskGibHour: price.default(0),
    /** For an hour of one GPU, of whatever model. Default 0. */
    gpuHour: price.default(0),
  })
  .strict()
export type PriceTable = z.infer<typeof priceTable>

/** JSON, or the path of a file that holds it. @throws SandlotError `invalid_request` naming the setting and what is wrong */
export function parsePrices(setting: string, given: string): PriceTable {
  const text = given.trimStart().startsWith('{') ? given : readText(setting, given)
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch (cause) {
    throw refused(setting, `is not JSON: ${(cause as Error).message}`, cause)
  }
  const parsed = priceTable.safeParse(json)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  const where = issue?.path.join('.')
  throw refused(setting, `${where ? `${where}: ` : ''}${issue?.message}`, parsed.error)
}

/** Whole millionths of the currency. */
export function microsOf(prices: PriceTable, allocated: Allocated): number {
  const { cpuMs, memoryMibMs, diskMibMs, gpuMs } = allocated
  const hours =
    cpuMs * prices.cpuHour +
    (memoryMibMs / 1_024) * prices.memoryGibHour +
    (diskMibMs / 1_024) * prices.diskGibHour +
    gpuMs * prices.gpuHour
  return Math.round((hours / 3_600_000) * 1e6)
}

function readText(setting: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    throw refused(
      setting,
      `${JSON.stringify(path)} can't be read: ${(cause as Error).message}`,
      cause,
    )
  }
}

function refused(setting: string, why: string, cause: unknown): SandlotError {
  return new SandlotError('invalid_request', `${setting}: ${why}`, {
    cause,
    hint: 'It is JSON, or the path of a file with it: {"currency": "USD", "cpuHour": 0.05, "memoryGibHour": 0.01, "diskGibHour": 0.0002, "gpuHour": 2.5}',
  })
}
