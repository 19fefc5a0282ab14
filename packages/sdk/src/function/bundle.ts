/** From a module of this machine to one file that needs nothing but Node.js. The bundler is loaded when it is first needed. */
import { basename, dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { SandlotError } from '@sandlot/protocol'
import type { BuildFailure, BuildOptions, Message, Plugin } from 'esbuild'

export interface Bundle {
  readonly code: Uint8Array
  /** `reward.ts#score` */
  readonly label: string
}

const SHOWN_ERRORS = 5
/** As old as the Node.js of a daemon can be. */
const TARGET = 'node24'
/** What is required while it runs is found: bundled modules of the older kind ask for parts of Node.js so. */
const BANNER =
  "import { createRequire as sandlotRequire } from 'node:module'; globalThis.require ??= sandlotRequire(import.meta.url);"

const refuseNative: Plugin = {
  name: 'no-native-modules',
  setup({ onResolve }) {
    onResolve({ filter: /\.node$/ }, ({ path }) => ({
      errors: [{ text: `${JSON.stringify(path)} is a native module, which can't be bundled` }],
    }))
  },
}

const SHARED = {
  ...({ bundle: true, platform: 'node', format: 'esm', write: false } as const),
  ...({ metafile: true, keepNames: true, logLevel: 'silent', charset: 'utf8' } as const),
  // Only its directory counts: the sources are named as seen from there.
  outfile: '/module.mjs',
  ...({ sourcemap: 'inline', sourcesContent: false, sourceRoot: 'file:///' } as const),
  banner: { js: BANNER },
  plugins: [refuseNative],
} satisfies BuildOptions

/** @throws SandlotError `function_invalid`: a syntax error, a missing dependency, a native module, no such export */
export async function bundleModule(module: URL | string, name: string): Promise<Bundle> {
  const path = pathOf(module)
  const { label } = labelled(path, name)
  const { build } = await loadBundler()
  const built = await build({ ...SHARED, entryPoints: [path], target: TARGET }).catch(
    (error: BuildFailure) => {
      throw bundleError(label, error)
    },
  )
  const [output] = Object.values(built.metafile.outputs).filter(({ exports }) => exports.length > 0)
  const exported = output?.exports ?? []
  if (!exported.includes(name)) throw noSuchExport(path, name, exported)
  const code = built.outputFiles[0]?.contents ?? new Uint8Array()
  const is = knownKind(new TextDecoder().decode(code), name)
  if (is !== undefined) throw invalid(`the export ${name} of ${path} is ${is}, not a function`)
  return { code, label }
}

function labelled(path: string, name: string): Pick<Bundle, 'label'> {
  return { label: name === 'default' ? basename(path) : `${basename(path)}#${name}` }
}

/** An export of a module. */
export interface Exported {
  readonly module: URL | string
  readonly name: string
}

/**
 * An episode, and its grader where that is a function too, as a function whose export `attempt` takes leases: with all that drives a sandbox
 * from inside of a container.
 * @throws SandlotError `function_invalid`
 */
export async function bundleAttempt(episode: Exported, grader?: Exported): Promise<Bundle> {
  const path = pathOf(episode.module)
  const { label } = labelled(path, episode.name)
  const lines = [
    `import { attemptHandler } from ${JSON.stringify(insidePath())}`,
    importOf(path, episode.name, 'episode'),
    ...(grader ? [importOf(pathOf(grader.module), grader.name, 'grader')] : []),
    `export const attempt = attemptHandler({ episode${grader ? ', grader' : ''} })`,
  ]
  const { build } = await loadBundler()
  const built = await build({
    ...SHARED,
    stdin: { contents: lines.join('\n'), resolveDir: dirname(path), sourcefile: 'attempt.mjs' },
    // Native parts of `ws` that it does without.
    external: ['bufferutil', 'utf-8-validate'],
    target: TARGET,
  }).catch((error: BuildFailure) => {
    throw bundleError(label, error)
  })
  return { code: built.outputFiles[0]?.contents ?? new Uint8Array(), label }
}

function importOf(path: string, name: string, as: string): string {
  return `import { ${JSON.stringify(name)} as ${as} } from ${JSON.stringify(path)}`
}

/** Beside this file where the sources are run, and beside the package's one file. */
function insidePath(): string {
  const source = new URL('./inside.ts', import.meta.url)
  const isSource = import.meta.url.endsWith('.ts')
  return fileURLToPath(isSource ? source : new URL('./inside.js', import.meta.url))
}

function pathOf(module: URL | string): string {
  const text = String(module)
  try {
    return text.startsWith('file:') ? fileURLToPath(text) : text
  } catch (cause) {
    throw invalid(`${text} is no file of this machine`, undefined, cause)
  }
}

async function loadBundler() {
  try {
    return await import('esbuild')
  } catch (cause) {
    throw invalid(
      'esbuild, which bundles functions, is not installed',
      'npm install esbuild',
      cause,
    )
  }
}

function bundleError(label: string, error: BuildFailure): SandlotError {
  const errors = error.errors ?? []
  if (errors.length === 0) return invalid(`${label} can't be bundled: ${error.message}`)
  const lines = errors.slice(0, SHOWN_ERRORS).map(lineOf)
  const more = errors.length - lines.length
  if (more > 0) lines.push(`and ${more} more`)
  // The name of a package, without the part of it that is asked for: what begins with a dot or a slash is a file.
  const missing = errors.flatMap(
    ({ text }) =>
      /^Could not resolve "((?:@[^/"]+\/)?[^"./][^/"]*)(?:\/[^"]*)?"/.exec(text)?.[1] ?? [],
  )
  const native = errors.some(({ text }) => text.includes('native module'))
  const hint = native
    ? 'Native modules are of one machine: install it in the image and call it from there, or use another package.'
    : missing[0] === undefined
      ? isUnresolved(errors)
        ? 'There is no such file: check the path.'
        : undefined
      : `Install it where the module is: npm install ${missing[0]}`
  return invalid(`${label} can't be bundled:\n${lines.join('\n')}`, hint, error)
}

function isUnresolved(errors: readonly Message[]): boolean {
  return errors.some(({ text }) => text.startsWith('Could not resolve "'))
}

function lineOf({ text, location }: Message): string {
  if (!location) return text
  const { file, line, column } = location
  return `${file}:${line}:${column + 1}: ${text}`
}

function noSuchExport(path: string, name: string, exported: readonly string[]): SandlotError {
  const has = exported.length > 0 ? `its exports are ${exported.join(', ')}` : 'it has none'
  return invalid(`${path} has no export ${name}: ${has}`, 'Name one with `export`.')
}

/**
 * What an export surely is that is no function, told by how the bundler writes its declaration; undefined where it may be one. The
 * container looks again.
 */
function knownKind(code: string, name: string): string | undefined {
  const exports = code.slice(code.lastIndexOf('\nexport {'))
  const local = exports.match(new RegExp(`(?:^|[{,\\s])([\\w$]+) as ${escaped(name)}[,\\s}]`))?.[1]
  const found = new RegExp(`^var ${escaped(local ?? name)} = (["'\`\\d{[]|true|false|null)`, 'm')
  const first = found.exec(code)?.[1]
  if (first === undefined) return undefined
  if (/["'`]/.test(first)) return 'text'
  if (/\d/.test(first)) return 'a number'
  if (first === '[') return 'an array'
  return first === '{' ? 'an object' : first
}

function escaped(name: string): string {
  return name.replace(/[$]/g, '\\$&')
}

function invalid(message: string, hint?: string, cause?: unknown): SandlotError {
  return new SandlotError('function_invalid', message, { ...(hint ? { hint } : {}), cause })
}
