/** A sandbox sent something that did not leave it. */
export interface RefusedPackets {
  readonly hostId: string
  /** `address:port`. */
  readonly target: string
  readonly protocol: 'tcp' | 'udp'
}
