/** Owners of sandboxes that are no attempts, which are named `run/key/attempt`. */
export const CLIENT = 'client'
/** Work of the daemon's own: a step of an image's build, or of a template, or the trial of a snapshot. It ends with the daemon. */
export const BUILD = 'build'

/** A container that runs a user's function. It ends with the daemon too: its inputs come by a pipe that is lost then. */
export const FUNCTION = 'function'

export function isAttempt(owner: string): boolean {
  return owner !== CLIENT && !endsWithDaemon(owner)
}

export function endsWithDaemon(owner: string): boolean {
  return owner === BUILD || owner === FUNCTION
}
