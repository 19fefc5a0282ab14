import { z } from 'zod'

const size = z.number().int().nonnegative()

/** Limits of a sandbox, as files of the driver hold them. */
export const sandboxLimits = z.strictObject({
  memoryBytes: size,
  cpus: z.number().positive(),
  pidsMax: size,
  userPidsMax: size.exactOptional(),
  diskBytes: size,
  nofileMax: size,
  fileBytesMax: size.exactOptional(),
})
