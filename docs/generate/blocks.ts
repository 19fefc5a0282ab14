/** Blocks that are made inside of pages that are written by hand. */

/** Puts the text between the markers `<!-- made: NAME -->` and `<!-- /made: NAME -->`. Throws when the page lacks them. */
export function fillBlock(page: string, name: string, text: string): string {
  const opening = `<!-- made: ${name} -->`
  const closing = `<!-- /made: ${name} -->`
  const start = page.indexOf(opening)
  const end = page.indexOf(closing)
  if (start < 0 || end < start) throw new Error(`the page has no block ${opening} … ${closing}`)
  return `${page.slice(0, start + opening.length)}\n${text.trimEnd()}\n${page.slice(end)}`
}
