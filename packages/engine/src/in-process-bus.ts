/** What the test mode does to messages; the same seed does the same. */
export interface BusFaults {
  readonly seed: number
  /** Each delivery is late by 0 to this much, so that messages overtake one another. Default 20. */
  readonly delayMsMax?: number
  /** Share of deliveries that happen twice, 0 to 1. Default 0.2. */
  readonly doubleShare?: number
}
