import { createHash } from 'node:crypto'
import { basename, join } from 'node:path'

/** Where the kernel's network namespaces have names. */
export const NAMESPACES = '/run/netns'

const TAG_CHARS = 5
const LINK_HOST_ID_CHARS = 8

/** Tells what one driver has in the machine's network from what others have; by the name that its cgroups have too. */
export function networkTag(stateDirectory: string): string {
  const name = basename(stateDirectory)
  return createHash('sha256').update(name).digest('hex').slice(0, TAG_CHARS)
}

/** What a sandbox with an interface of its own is called in the machine's network. */
export interface OpenNames {
  readonly namespace: string
  readonly namespacePath: string
  /** The router's end of the pair; a link's name has at most 15 characters. */
  readonly link: string
  /** The router's namespace. */
  readonly router: string
}

export function openNames(tag: string, hostId: string): OpenNames {
  const namespace = namespacePrefix(tag) + hostId
  return {
    namespace,
    namespacePath: join(NAMESPACES, namespace),
    link: linkPrefix(tag) + hostId.slice(0, LINK_HOST_ID_CHARS),
    router: routerNames(tag).namespace,
  }
}

/** Followed by the whole host id. */
export function namespacePrefix(tag: string): string {
  return `sandlot-${tag}-`
}

export function linkPrefix(tag: string): string {
  return `sl${tag}`
}

/** Of the rules that hold for all sandboxes of one driver. */
export function tableName(tag: string): string {
  return `sandlot_${tag}`
}

/** What the router of all sandboxes of one driver is called: packets go from their links through its namespace to the machine. */
export interface RouterNames {
  readonly namespace: string
  readonly namespacePath: string
  /** The machine's end of the pair between them. Its name is that of a sandbox's link, for firewalls that are told of those. */
  readonly uplink: string
}

export function routerNames(tag: string): RouterNames {
  const namespace = `${namespacePrefix(tag)}router`
  return {
    namespace,
    namespacePath: join(NAMESPACES, namespace),
    uplink: `${linkPrefix(tag)}uplink`,
  }
}
