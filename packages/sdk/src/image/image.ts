/** Descriptions of images. Nothing happens until one is built or used; paths are of the client's machine. */

export type ImageDescription =
  | { readonly kind: 'debian'; readonly suite: string; readonly packages: readonly string[] }
  | { readonly kind: 'directory'; readonly path: string }
  | { readonly kind: 'tar'; readonly path: string }
  | { readonly kind: 'oci'; readonly path: string }

export const Image = {
  /** A Debian system with these packages, from the package sources of the daemon's machine: `Image.debian('bookworm', ['python3'])`. */
  debian(suite: string, packages: readonly string[] = []): ImageDescription {
    return { kind: 'debian', suite, packages }
  },
  /** The content of a directory as the root file system. */
  directory(path: string): ImageDescription {
    return { kind: 'directory', path }
  },
  /** The content of a tar file (plain, gzip or zstd) as the root file system. */
  tar(path: string): ImageDescription {
    return { kind: 'tar', path }
  },
  /** An OCI image layout: a directory, or a tar of one. */
  oci(path: string): ImageDescription {
    return { kind: 'oci', path }
  },
} as const
