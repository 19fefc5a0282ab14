/**
 * Images of registries, by skopeo: it knows their protocols and the machine's credentials (`REGISTRY_AUTH_FILE`,
 * `~/.docker/config.json`). A tag is resolved to its digest before anything is decided, so that a key never means two contents.
 */
import { createHash } from 'node:crypto'
import { access, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { runStreaming, type StreamingOutcome } from '../process/run-streaming.ts'
import type { BuildContext, BuiltImage } from './build.ts'
import { diskFull, ImageError, type ImageErrorCode } from './image-error.ts'
import { imageLimits } from './limits.ts'
import { buildOciLayout, machineArchitecture } from './oci.ts'
import { OciLayout } from './oci-layout.ts'
import { formatReference, isLoopback, parseReference, type RegistryReference } from './reference.ts'
import type { SourceOf } from './source.ts'

export interface RegistryOptions {
  /** What skopeo sees of this machine's environment: where credentials, certificates and proxies are. */
  readonly env: Readonly<Record<string, string>>
  /** Signature policies that hold where they exist. */
  readonly policyPaths: readonly string[]
  /** Default: as the system finds it. */
  readonly skopeo?: string
}

interface Wait {
  readonly signal: AbortSignal
}

/** The same reference with its digest. Asks the registry only where it has none. */
export async function pinnedReference(
  text: string,
  options: RegistryOptions,
  wait: Wait,
): Promise<string> {
  const reference = parseReference(text)
  if (reference.digest !== undefined) return formatReference(reference)
  const args = ['inspect', '--raw', ...(await trust(options)), ...tls(reference, '--tls-verify')]
  // Of the bytes as the registry has them: an index where the image is for several architectures.
  const hash = createHash('sha256')
  await skopeo([...args, address(reference)], options, {
    ...wait,
    reference,
    timeoutMs: imageLimits.registryAnswerMs,
    onOutput: (bytes) => hash.update(bytes),
    log: () => {},
  })
  return formatReference({ ...reference, digest: `sha256:${hash.digest('hex')}` })
}

export async function buildRegistry(
  source: SourceOf<'registry'>,
  context: BuildContext,
  options: RegistryOptions,
): Promise<BuiltImage> {
  const { registry, repository, digest } = parseReference(source.reference)
  if (digest === undefined) throw new Error('a reference is resolved before it is built')
  const reference = { registry, repository, digest }
  const layout = join(context.directory, 'layout')
  const temporary = join(context.directory, 'skopeo')
  await mkdir(temporary)
  context.log(`fetching ${formatReference(reference)}`)
  const args = [
    ...[...(await trust(options)), '--tmpdir', temporary],
    ...['--override-os', 'linux', '--override-arch', machineArchitecture],
    ...['copy', '--quiet', '--retry-times', '2', ...tls(reference, '--src-tls-verify')],
    ...[address(reference), `oci:${layout}:image`],
  ]
  await skopeo(args, options, {
    signal: context.signal,
    reference,
    timeoutMs: imageLimits.registryCopyMs,
    onOutput: () => {},
    log: context.log,
  })
  return await buildOciLayout(await OciLayout.at(layout), context)
}

interface Skopeo extends Wait {
  readonly reference: RegistryReference
  readonly timeoutMs: number
  readonly onOutput: (bytes: Uint8Array) => void
  readonly log: (line: string) => void
}

async function skopeo(
  args: readonly string[],
  { env, skopeo: program = 'skopeo' }: RegistryOptions,
  { reference, timeoutMs, signal, onOutput, log }: Skopeo,
): Promise<void> {
  const said: string[] = []
  const outcome = await runStreaming(program, args, {
    signal,
    timeoutMs,
    env,
    cwd: '/',
    lineBytesMax: imageLimits.logLineBytesMax,
    onStderrLine: (line) => {
      said.push(line)
      if (said.length > imageLimits.logLinesKept) said.shift()
      log(line)
    },
    consume: async (stdout) => {
      let sizeBytes = 0
      for await (const bytes of stdout) {
        sizeBytes += bytes.length
        if (sizeBytes > imageLimits.ociDocumentBytesMax) throw new Error('its answer is too large')
        onOutput(bytes)
      }
    },
  })
  if (outcome.problem !== undefined) throw failure(reference, outcome, said)
}

/** Without a policy of its own skopeo refuses to work; then it is as every other puller: it takes what the registry gives. */
async function trust({ policyPaths }: RegistryOptions): Promise<string[]> {
  const found = await Promise.all(
    policyPaths.map((path) =>
      access(path).then(
        () => true,
        () => false,
      ),
    ),
  )
  return found.includes(true) ? [] : ['--insecure-policy']
}

function tls(reference: RegistryReference, option: string): string[] {
  return isLoopback(reference) ? [`${option}=false`] : []
}

/** skopeo takes a tag or a digest, not both. */
function address({ tag, digest, ...name }: RegistryReference): string {
  return `docker://${formatReference({ ...name, ...(digest ? { digest } : tag ? { tag } : {}) })}`
}

const CAUSES: readonly (readonly [RegExp, ImageErrorCode, string])[] = [
  [
    /no image found in (image index|manifest list) for|choosing an? image from manifest/i,
    'image_source_invalid',
    'The image is not made for this machine: name one that has its architecture.',
  ],
  [
    /manifest unknown|name unknown|repository .* not found|not found: manifest|StatusCode: 404|\(404\)|404 \(Not Found\)/i,
    'registry_image_unknown',
    'Check its name and its tag, and that it still exists.',
  ],
  [
    /unauthorized|authentication required|invalid username\/password|access to the resource is denied|StatusCode: 40[13]|40[13] \(|denied:/i,
    'registry_denied',
    'It may be private, or not exist: log in on the daemon’s machine (`skopeo login REGISTRY`), or set REGISTRY_AUTH_FILE for the daemon. Also check the name.',
  ],
  [
    /toomanyrequests|too many requests|StatusCode: 429/i,
    'registry_unreachable',
    'The registry takes no more requests from here for now: wait, or log in on the daemon’s machine.',
  ],
  [
    /x509|certificate|HTTP response to HTTPS client/i,
    'registry_unreachable',
    'The daemon’s machine does not trust the registry’s certificate: add it to the machine’s certificates.',
  ],
]

function failure(
  reference: RegistryReference,
  outcome: Pick<StreamingOutcome<void>, 'exitCode' | 'timedOut' | 'problem'>,
  logTail: readonly string[],
): ImageError {
  const name = formatReference(reference)
  if (outcome.timedOut) {
    return new ImageError('registry_unreachable', `${name}: the registry did not answer in time.`, {
      logTail,
      hint: UNREACHABLE,
    })
  }
  if (outcome.exitCode === undefined) {
    return new ImageError('image_build_failed', `${name} can’t be fetched: skopeo did not start.`, {
      logTail,
      hint: 'Install it on the daemon’s machine: apt-get install skopeo',
    })
  }
  const why = message(logTail.at(-1) ?? outcome.problem ?? 'skopeo failed')
  if (/no space left on device/i.test(why)) return diskFull('the image store', outcome.problem)
  const found = CAUSES.find(([pattern]) => pattern.test(why))
  const [, code = 'registry_unreachable', hint = UNREACHABLE] = found ?? []
  return new ImageError(code, `${name}: ${why}.`, { logTail, hint })
}

const UNREACHABLE = 'Check the daemon’s network, its proxy settings, and that the registry is up.'

/** What skopeo's last line of log says. */
function message(line: string): string {
  const quoted = /msg="((?:[^"\\]|\\.)*)"/.exec(line)?.[1]
  return (quoted ?? line).replaceAll('\\"', '"').replace(/\.$/, '')
}
