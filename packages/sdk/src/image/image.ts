/** Descriptions of images. Nothing happens until one is built or used; paths are of the client's machine. */
import type { NetworkPolicy } from '@sandlot/protocol'
import { refuseUnknown } from '../connection/unknown-option.ts'
import { localCopy } from './copied-files.ts'
import type {
  CopyOptions,
  DockerfileOptions,
  ImageBase,
  LocalCopyOptions,
  LocalStep,
  RunOptions,
} from './local-step.ts'
import { aptCommand, npmCommand, pipCommand } from './packages.ts'

/**
 * A base and the steps over it. Immutable: each method gives a new description. Steps run in a sandbox of the daemon, in order, and
 * each result is kept by content: what was built once is found at once, also by others.
 */
export class ImageDescription {
  readonly base: ImageBase
  readonly steps: readonly LocalStep[]
  /** What its commands reach; undefined is `packages`. */
  readonly policy: NetworkPolicy | undefined

  constructor(base: ImageBase, steps: readonly LocalStep[] = [], policy?: NetworkPolicy) {
    this.base = base
    this.steps = steps
    this.policy = policy
  }

  /** Runs a command: text for the image's shell, or an argument list. It fails the build unless it exits with 0. */
  run(command: string | readonly string[], options: RunOptions = {}): ImageDescription {
    refuseUnknown(options, ['env', 'network', 'timeout'])
    const { env, network, timeout } = options
    return this.with({
      kind: 'run',
      command: typeof command === 'string' ? command : [...command],
      ...(env ? { env: { ...env } } : {}),
      ...(network === undefined ? {} : { network }),
      ...(timeout === undefined ? {} : { timeout }),
    })
  }

  /**
   * Copies a file or the content of a directory of this machine. A file becomes `remote`, or goes into it when that ends in a
   * slash or is a directory in the image.
   */
  copy(local: string, remote: string, options: LocalCopyOptions = {}): ImageDescription {
    const { exclude, ...rest } = options
    const files = localCopy(local, remote, exclude)
    return this.with({ kind: 'copy', files, to: remote, ...rest })
  }

  /** Copies out of another image; a path may hold `*`, `?` and `[…]`. */
  copyFrom(
    source: ImageDescription,
    paths: string | readonly string[],
    remote: string,
    options: CopyOptions = {},
  ): ImageDescription {
    const all = typeof paths === 'string' ? [paths] : [...paths]
    return this.with({ kind: 'copyFrom', source, paths: all, to: remote, ...options })
  }

  /** Variables of all commands from here on, also of sandboxes that are started from the image. */
  env(env: Readonly<Record<string, string>>): ImageDescription {
    return this.with({ kind: 'env', env: { ...env } })
  }

  /** Where commands run from here on; made when it is missing. */
  workdir(path: string): ImageDescription {
    return this.with({ kind: 'workdir', path })
  }

  /** Who runs commands from here on: a name of the image, or `uid[:gid]`. */
  user(user: string): ImageDescription {
    return this.with({ kind: 'user', user })
  }

  /** Installs Debian packages, from the package sources of the image by way of the daemon's mirrors. */
  apt(...packages: readonly string[]): ImageDescription {
    return this.run(aptCommand(packages), { network: 'packages' })
  }

  /** Installs Python packages with the image's `python3`. */
  pip(...requirements: readonly string[]): ImageDescription {
    return this.run(pipCommand(requirements), {
      network: 'packages',
      // Newer Debian systems refuse pip outside of a virtual environment; an image has nobody else to protect.
      env: { PIP_BREAK_SYSTEM_PACKAGES: '1', PIP_ROOT_USER_ACTION: 'ignore' },
    })
  }

  /** Installs packages of npm for all users of the image. */
  npm(...packages: readonly string[]): ImageDescription {
    return this.run(npmCommand(packages), { network: 'packages' })
  }

  /** What its `run` steps reach unless they say otherwise. Default: `packages`, the package mirrors of the daemon's machine. */
  network(policy: NetworkPolicy): ImageDescription {
    return new ImageDescription(this.base, this.steps, policy)
  }

  /** One more step. */
  with(step: LocalStep): ImageDescription {
    return new ImageDescription(this.base, [...this.steps, step], this.policy)
  }
}

export const Image = {
  /** A Debian system with these packages, from the package sources of the daemon's machine: `Image.debian('bookworm', ['python3'])`. */
  debian(suite: string, packages: readonly string[] = []): ImageDescription {
    return new ImageDescription({ kind: 'debian', suite, packages: [...packages] })
  },
  /** An image of a registry: `Image.registry('python:3.12-slim')`. A tag is resolved to its digest when the image is built. */
  registry(reference: string): ImageDescription {
    return new ImageDescription({ kind: 'registry', reference })
  },
  /** The content of a directory as the root file system. */
  directory(path: string): ImageDescription {
    return new ImageDescription({ kind: 'directory', path })
  },
  /** The content of a tar file (plain, gzip or zstd) as the root file system. */
  tar(path: string): ImageDescription {
    return new ImageDescription({ kind: 'tar', path })
  },
  /** An OCI image layout: a directory, or a tar of one. */
  oci(path: string): ImageDescription {
    return new ImageDescription({ kind: 'oci', path })
  },
  /** An image, a snapshot or a template that the daemon has, by its id or name. */
  fromId(id: string): ImageDescription {
    return new ImageDescription({ kind: 'id', id })
  },
  /** What a Dockerfile builds. An instruction that has no meaning here is refused by name and line. */
  dockerfile(path: string, options: DockerfileOptions = {}): ImageDescription {
    refuseUnknown(options, ['context', 'target', 'args', 'timeout'])
    return new ImageDescription({ kind: 'dockerfile', path, options })
  },
} as const
