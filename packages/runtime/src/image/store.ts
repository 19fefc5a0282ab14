import type { ImageSource } from '@sandlot/protocol'
import type { HasBlob, OpenBlob } from './build.ts'
import type { Collected } from './collector.ts'
import type { DebianOptions } from './debian.ts'
import type { ExportFormat } from './export/export.ts'
import { FileImageStore } from './file-image-store.ts'
import type { Image } from './image.ts'
import { ImageFiles } from './image-files.ts'
import type { RegistryOptions } from './registry.ts'
import type { ResolveId } from './resolve.ts'
import type { BuildWait } from './shared-builds.ts'
import type { OpenStepMachine } from './steps/machine.ts'

/**
 * The images of this machine. Several processes may have the same directory open: a source is built once, whoever asks.
 */
export interface ImageStore extends AsyncDisposable {
  /**
   * The image of a source, built when it is not here yet. Building is shared by all who ask for the same source; it is given
   * up when the last of them is aborted, and then leaves nothing but steps that were done. `onLog` gets the lines of the build, none
   * when nothing had to be built. Fails with `blob_unknown`, which names all contents that it lacks, before anything runs; with `image_source_invalid`, `image_build_failed`, `registry_…`, `disk_full`, or as
   * `openBlob` and `openMachine` do.
   */
  build(source: ImageSource, wait?: SourceWait): Promise<Image>

  /**
   * An image with one layer more: what a sandbox of the parent changed, as the tar that its guest's `difference` gives. Without any
   * change it is the parent. Fails with `image_unknown`, `image_source_invalid` where what the guest sent can't be stored,
   * `disk_full`, or as the stream does; then nothing is left.
   */
  extend(request: ExtendRequest, wait?: ImageWait): Promise<Image>

  /** Fails with `image_unknown`. */
  get(id: string): Promise<Image>
  find(id: string): Promise<Image | undefined>
  /** Oldest first, without intermediate results and without those that came out of sandboxes. */
  list(): Promise<readonly Image[]>
  /** Those that came out of sandboxes, and forms with few layers of images that are gone. */
  listExtended(): Promise<readonly Image[]>
  /** When an image was used last, or made. Milliseconds since 1970. */
  usedAtMs(id: string): Promise<number>

  /**
   * Keeps an image from being removed while something uses it. Pins end with this process; while there is one of an image,
   * the next ones read no file. Fails with `image_unknown`.
   */
  pin(id: string): Promise<PinnedImage>

  /**
   * The same for a sandbox that is about to start: of an image of many layers the form with few, once that is there. It is made in its
   * own time, after the image was built or saved, or when this was asked for the first time. Its id is another one.
   */
  pinForStart(id: string): Promise<PinnedImage>

  /**
   * The image with this process's Node.js in it, at `NODE_PATH`; without an id over the smallest image in which it runs. Written once.
   * Fails with `image_unknown`, or `image_unfit` where the image has no glibc, or an older one than it needs.
   */
  withNode(id: string | undefined, wait?: ImageWait): Promise<Image>

  /** Removes an image and the layers that no other image has. Fails with `image_unknown` or `image_in_use`. */
  remove(id: string, wait?: ImageWait): Promise<Collected>

  /** Removes what nothing uses, the longest unused first, until no more than so many bytes are left. */
  collect(sizeBytesMax: number, wait?: ImageWait): Promise<Collected>

  /** Removes the intermediate results of builds that nothing uses. */
  collectIntermediate(wait?: ImageWait): Promise<Collected>

  /** The image as a file for other programs; it is kept meanwhile. Fails with `image_unknown`. */
  export(id: string, format: ExportFormat): AsyncGenerator<Uint8Array>

  /** Reads all layers and compares them with their digests. Fails with `image_unknown`. */
  verify(id: string, wait?: ImageWait): Promise<readonly LayerProblem[]>

  /** Gives up what is being built. Idempotent. */
  [Symbol.asyncDispose](): Promise<void>
}

export interface SourceWait extends BuildWait {
  /** What ids of snapshots and templates stand for, to who asks. Default: there are none. */
  readonly resolveId?: ResolveId
  /** Who asks: functions of one project are not those of another. */
  readonly project?: string
}

export interface ImageWait {
  readonly signal?: AbortSignal | undefined
}

export interface PinnedImage extends Disposable {
  readonly image: Image
}

export interface ExtendRequest {
  /** Id of an image. */
  readonly parent: string
  /** Read once. */
  readonly difference: AsyncIterable<Uint8Array>
  /** Gets what of it the image can't have, such as extended attributes: a line each, a bounded number. */
  readonly onWarning?: (line: string) => void
}

export interface LayerProblem {
  readonly digest: string
  readonly problem: 'missing' | 'damaged'
}

export interface ImageStoreOptions {
  /** Everything the store has lies below it. Made when missing. */
  readonly directory: string
  readonly openBlob: OpenBlob
  /** Default: all are, until one is opened. */
  readonly hasBlob?: HasBlob
  readonly debian?: DebianOptions
  /** Default: skopeo with this machine's settings. */
  readonly registry?: RegistryOptions
  /** Where steps run. Without it, builds whose steps run something are refused. */
  readonly openMachine?: OpenStepMachine
  /** The longest unused go when all layers together take more. Default: no limit. */
  readonly sizeBytesMax?: number
  /** Milliseconds since 1970. */
  readonly now?: () => number
  /** Of the Node.js that `withNode` brings. Default: the one that runs this process. */
  readonly nodeExecutable?: string
}

export async function openImageStore(options: ImageStoreOptions): Promise<ImageStore> {
  return new FileImageStore(options, await ImageFiles.open(options.directory))
}
