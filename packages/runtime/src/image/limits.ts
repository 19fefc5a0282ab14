/** What an image may cost this machine, however it is made. */
export const imageLimits = {
  layerBytesMax: 64 * 1024 ** 3,
  /** Everything in one layer; each costs about half a kilobyte of memory while the layer is written. */
  layerEntriesMax: 1_000_000,
  pathBytesMax: 4096,
  nameBytesMax: 255,
  /** Directories below one another; keeps recursion over a tree shallow. */
  pathDepthMax: 512,
  /** A pax or GNU long-name header. */
  tarExtensionBytesMax: 1024 * 1024,
  /** An index, a manifest or a configuration of an OCI layout. */
  ociDocumentBytesMax: 4 * 1024 * 1024,
  ociBlobsMax: 1024,
  packageNameLengthMax: 200,
  /** A Debian build, downloads included. */
  debianBuildMs: 30 * 60_000,
  logLinesKept: 40,
  logLineBytesMax: 4096,
} as const
