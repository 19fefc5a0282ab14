import { textOf } from './machine-files.ts'
import type { PackageMirrors } from './mirrors.ts'
import type { PackageSettings } from './settings.ts'

/**
 * One file of all that the machine trusts, where its settings name certificates of their own; undefined where they don't: then what
 * an image trusts is enough.
 */
export async function certificateBundle(
  { certificatePaths }: PackageMirrors,
  { certificatesPath }: PackageSettings,
): Promise<string | undefined> {
  if (certificatePaths.length === 0) return undefined
  const blocks = await certificatesIn([certificatesPath, ...certificatePaths])
  return blocks.length === 0 ? undefined : `${blocks.join('\n')}\n`
}

/** Each certificate of these files once. */
export async function certificatesIn(paths: readonly string[]): Promise<string[]> {
  const texts = await Promise.all([...new Set(paths)].map(textOf))
  const blocks = texts.flatMap(
    (text) => text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [],
  )
  return [...new Set(blocks)]
}
