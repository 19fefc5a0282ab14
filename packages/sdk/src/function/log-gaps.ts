import type { TaskLog } from '@sandlot/protocol'

/** The lines, and where some are missing a line that says how many: the daemon keeps the latest alone. `next`: the number that was due. */
export function withGaps(lines: readonly TaskLog[], next: number): TaskLog[] {
  let due = next
  return lines.flatMap((line) => {
    const missing = line.seq - due
    due = line.seq + 1
    if (missing <= 0) return [line]
    const text = `(${missing} lines were printed faster than they were read, and are gone)`
    return [{ ...line, text }, line]
  })
}
