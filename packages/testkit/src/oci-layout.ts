import { createHash } from 'node:crypto'
import { type TarMember, tarArchive } from './tar-archive.ts'

export interface OciLayoutInput {
  /** Layer blobs, bottom first, as they are stored: plain or compressed. */
  readonly layers: readonly Uint8Array[]
  /** The `config` object of the image's configuration. */
  readonly config?: Readonly<Record<string, unknown>>
  /** Default: this machine's. */
  readonly architecture?: string
  /** Changes the members of the layout before they are packed. */
  readonly edit?: (members: TarMember[]) => TarMember[]
}

/** An OCI image layout with one image, as a tar. */
export function ociLayout(input: OciLayoutInput): Buffer {
  const native = process.arch === 'x64' ? 'amd64' : process.arch
  const architecture = input.architecture ?? native
  const members: TarMember[] = []
  const blob = (content: Uint8Array): { digest: string; size: number } => {
    const hex = createHash('sha256').update(content).digest('hex')
    members.push({ path: `blobs/sha256/${hex}`, content })
    return { digest: `sha256:${hex}`, size: content.length }
  }
  const json = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value))
  const layers = input.layers.map(blob)
  const config = blob(json({ os: 'linux', architecture, config: input.config ?? {} }))
  const manifest = blob(json({ schemaVersion: 2, config, layers }))
  const platform = { os: 'linux', architecture }
  members.push(
    { path: 'oci-layout', content: '{"imageLayoutVersion":"1.0.0"}' },
    {
      path: 'index.json',
      content: json({ schemaVersion: 2, manifests: [{ ...manifest, platform }] }),
    },
  )
  return tarArchive(input.edit?.(members) ?? members)
}
