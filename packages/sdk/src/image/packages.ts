/** The commands that install packages in an image. */
import { SandlotError } from '@sandlot/protocol'

export function aptCommand(packages: readonly string[]): string {
  const names = checked(
    'apt',
    packages,
    /^[a-z0-9][a-z0-9+.-]*(:[a-z0-9]+)?([=/][A-Za-z0-9.+~:-]+)?$/,
  )
  return [
    'apt-get update',
    `DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ${names.join(' ')}`,
    'rm -rf /var/lib/apt/lists/*',
  ].join(' && ')
}

export function pipCommand(requirements: readonly string[]): readonly string[] {
  // A requirement may hold spaces and comparison signs, so it never meets a shell; only options are kept out.
  const names = checked('pip', requirements, /^[^-\s].*$/)
  return ['python3', '-m', 'pip', 'install', '--no-cache-dir', ...names]
}

export function npmCommand(packages: readonly string[]): readonly string[] {
  const names = checked('npm', packages, /^[^-\s]\S*$/)
  return ['npm', 'install', '--global', '--no-fund', '--no-audit', ...names]
}

function checked(tool: string, names: readonly string[], shape: RegExp): readonly string[] {
  const wrong = names.find((name) => typeof name !== 'string' || !shape.test(name))
  if (names.length > 0 && wrong === undefined) return names
  const problem =
    wrong === undefined ? 'no package is named' : `${JSON.stringify(wrong)} names no package`
  throw new SandlotError('invalid_request', `Image.${tool}: ${problem}`, {
    hint: `Give names, one an argument: .${tool}('first', 'second'); what needs options is a .run().`,
  })
}
