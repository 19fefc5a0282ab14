import { RUNTIME_LIMITS } from '../limits.ts'

/** What an image may cost this machine, however it is made. */
export const imageLimits = {
  layerBytesMax: 64 * 1024 ** 3,
  /** What a layer that is being written leaves free on its disk, where other things of the daemon lie; of a small disk a share. */
  diskReserveBytes: 1024 ** 3,
  diskReserveShare: 0.05,
  /** How much of a layer is written from one look at the disk to the next. */
  diskLookBytes: 256 * 1024 ** 2,
  /** Everything in one layer; each costs about half a kilobyte of memory while the layer is written. */
  layerEntriesMax: 1_000_000,
  /** Everything in all layers of one image: what is seen of them is put together in memory. */
  imageEntriesMax: 2_000_000,
  /** Inodes and directories of one layer, read back. */
  layerMetadataBytesMax: 1024 ** 3,
  pathBytesMax: 4096,
  nameBytesMax: 255,
  /** Directories below one another; keeps recursion over a tree shallow. */
  pathDepthMax: 512,
  /** A pax or GNU long-name header, and what global ones say in all. */
  tarExtensionBytesMax: 1024 * 1024,
  /** Such headers before one entry. */
  tarExtensionsMax: 16,
  /** An archive that unpacks to more than so many times its size is none that anybody packed, from this size on. */
  unpackedRatioMax: 200,
  unpackedBytesFree: 1024 ** 3,
  /** Stretches of data in a sparse file. */
  tarSparseRegionsMax: 65_536,
  /** An index, a manifest or a configuration of an OCI layout. */
  ociDocumentBytesMax: 4 * 1024 * 1024,
  ociBlobsMax: 1024,
  packageNameLengthMax: 200,
  /** A Debian build, downloads included. */
  debianBuildMs: 30 * 60_000,
  /** A registry says which digest a tag has. */
  registryAnswerMs: 60_000,
  /** All of an image comes from its registry. */
  registryCopyMs: 60 * 60_000,
  /** An image used within this time is not collected: somebody may be about to start from it. */
  collectedAfterMs: 10 * 60_000,
  /** One step of a build. */
  stepMs: 60 * 60_000,
  /** A last look at the sandbox of a step that failed. */
  lastLookMs: 1_000,
  /** What a step writes is shown up to here. */
  stepLogBytesMax: 16 * 1024 ** 2,
  /** An image of more layers gets another form with so many, in its own time; one of which a sandbox was saved gets it beyond the second. */
  layersKept: 10,
  layersSaved: 20,
  /** More layers than a sandbox can have are joined before the image is there. */
  layersMax: RUNTIME_LIMITS.layersMax,
  /** Joining the layers of one image in its own time, and when it is tried again where it failed. */
  joinMs: 30 * 60_000,
  joinAgainMs: 10 * 60_000,
  /** Symbolic links that one path leads through. */
  symlinksMax: 40,
  /** Contents of /etc/passwd or /etc/group that are looked through. */
  accountBytesMax: 1024 * 1024,
  logLinesKept: 40,
  /** Of them, what the error of a failed step says. */
  logLinesInMessage: 15,
  logLineBytesMax: 4096,
} as const
