import { note } from '../output/terminal.ts'

/** Each once, however many tasks have it. */
export function tellNotes(notes: readonly { readonly key: string; readonly text: string }[]): void {
  const byText = Map.groupBy(notes, ({ text }) => text)
  for (const [text, [first, ...more]] of byText) {
    const others = more.length === 0 ? '' : ` (and ${more.length} more)`
    note(`${first?.key}${others}: ${text}`)
  }
}
