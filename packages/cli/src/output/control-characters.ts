/** What came from elsewhere commands no terminal: control characters but line feeds are shown as `\x1b`. */
export function shownControls(text: string): string {
  return text.replace(/[^\P{Cc}\n]/gu, shown)
}

/** The same for text that is not in columns: its tabs stay. */
export function harmless(text: string): string {
  return text.replace(/[^\P{Cc}\n\t]/gu, shown)
}

function shown(control: string): string {
  return `\\x${control.charCodeAt(0).toString(16).padStart(2, '0')}`
}
