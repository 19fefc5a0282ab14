import type { ContainerSource } from '../../functions/container.ts'

/** What a coordinator needs to have functions run as workers. */
export interface FunctionHost {
  readonly source: ContainerSource
  /** Where the API answers inside of a container. */
  readonly url: string
  /** The right to the sandbox of a lease, for as long as the lease lives. */
  token(right: {
    readonly project: string
    readonly sandbox: string
    readonly lease: string
  }): string
}
