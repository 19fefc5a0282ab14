import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { textOf } from '../network/packages/machine-files.ts'

/** What the driver says of one GPU. */
export interface DriverGpu {
  readonly model: string
  readonly minor: number | undefined
  readonly uuid: string | undefined
}

/** `/proc/driver/nvidia/gpus/<address>/information` of each. */
export async function driverGpus(directory: string): Promise<readonly DriverGpu[]> {
  const names = await readdir(directory).catch(() => [])
  const texts = await Promise.all(names.map((name) => textOf(join(directory, name, 'information'))))
  return texts.flatMap((text) => {
    const field = (name: string) => new RegExp(`^${name}:\\s*(.+?)\\s*$`, 'm').exec(text)?.[1]
    const model = field('Model')
    const minor = field('Device Minor')
    if (model === undefined) return []
    return [
      { model, minor: minor === undefined ? undefined : Number(minor), uuid: field('GPU UUID') },
    ]
  })
}

/** Whether the words that somebody asked for stand in a model's name, one behind the other: `h100` in `NVIDIA H100 80GB HBM3`. */
export function isOfModel(model: string, type: string | undefined): boolean {
  if (type === undefined) return true
  return ` ${wordsOf(model)} `.includes(` ${wordsOf(type)} `)
}

function wordsOf(text: string): string {
  return text
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '')
    .join(' ')
}
