/** What a person who waits for a Debian build wants to hear, out of what mmdebstrap says. */

const NAMES_SHOWN = 5

/** Gives the news in a line of mmdebstrap's, if it has any. */
export function debianProgress(
  suite: string,
  packages: readonly string[],
): (line: string) => string | undefined {
  const names = shortList(packages)
  const base = `Debian ${suite}`
  const news: readonly (readonly [string, string])[] = [
    ['I: running apt-get update', `reading the package lists of ${base}`],
    ['I: downloading packages with apt', `downloading ${base}`],
    ['I: extracting archives', `unpacking ${base}`],
    [
      'I: installing essential packages',
      `${packages.length > 0 ? `packages found: ${names}; ` : ''}installing ${base}`,
    ],
    ['I: installing remaining packages', `downloading and installing ${names}`],
    ['I: creating tarball', 'packing the image'],
  ]
  return (line) => news.find(([begin]) => line.startsWith(begin))?.[1]
}

function shortList(packages: readonly string[]): string {
  const shown = packages.slice(0, NAMES_SHOWN).join(', ')
  const more = packages.length - NAMES_SHOWN
  return more > 0 ? `${shown} and ${more} more` : shown || 'the rest of the base system'
}
