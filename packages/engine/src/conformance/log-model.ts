import type { Appended, AppendOptions } from '../log.ts'

/** A stream as it must behave, in memory. Positions are numbers from 1. */
export class LogModel {
  records: { position: number; text: string; dedup: string | undefined }[] = []
  head = 0
  trimmed = 0
  checkpoint: { position: number; state: string } | undefined
  /** The real positions, by the model's. */
  readonly positions = new Map<number, string>()

  /** What the append must do; `undefined`: refuse with a conflict. */
  append(
    texts: readonly string[],
    { expect, dedup }: AppendOptions,
  ): { written: number[]; duplicates: { index: number; at: number }[] } | undefined {
    const wanted = expect === 'start' ? 0 : expect
    const head = this.head === 0 ? 0 : this.positions.get(this.head)
    if (wanted !== undefined && wanted !== head) return undefined
    const written: number[] = []
    const duplicates: { index: number; at: number }[] = []
    for (const [index, text] of texts.entries()) {
      const key = dedup?.[index]
      const standing = key === undefined ? undefined : this.records.find((r) => r.dedup === key)
      if (standing) {
        duplicates.push({ index, at: standing.position })
        continue
      }
      this.head += 1
      this.records.push({ position: this.head, text, dedup: key })
      written.push(this.head)
    }
    return { written, duplicates }
  }

  /** Learns the real positions after an append, from what a read gave. */
  learn(written: readonly number[], positions: readonly string[]): void {
    for (const [index, position] of written.entries()) {
      this.positions.set(position, positions[index] ?? '')
    }
  }

  appended(duplicates: readonly { index: number; at: number }[]): Appended {
    return {
      position: this.positions.get(this.head) ?? '',
      duplicates: duplicates.map(({ index, at }) => ({
        index,
        position: this.positions.get(at) ?? '',
      })),
    }
  }

  trim(upTo: number): void {
    this.trimmed = Math.max(this.trimmed, upTo)
    this.records = this.records.filter((record) => record.position > this.trimmed)
  }
}
