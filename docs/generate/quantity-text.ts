import { formatDuration, formatSize } from '@sandlot/protocol'

/** A number for a person, by the unit that its name ends with: `transferMs` 900000 → `15m`. */
export function quantityText(name: string, value: number): string {
  const words = name.replace(/_?(Max|Min|First|MAX|MIN|DEFAULT)$/, '')
  if (/(Ms|_MS)$/.test(words)) return formatDuration(value)
  if (/(Bytes|_BYTES)$/.test(words)) return formatSize(value)
  return value.toLocaleString('en')
}
