/** Owners of sandboxes that are no attempts, which are named `run/key/attempt`. */
export const CLIENT = 'client'
/** A step of an image's build. It ends with the daemon: the next one builds the step again. */
export const BUILD = 'build'

export function isAttempt(owner: string): boolean {
  return owner !== CLIENT && owner !== BUILD
}
