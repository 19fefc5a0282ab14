/**
 * What `runsc --version` says where gVisor's driver is known to work: its control socket may change with each release. The set-up
 * brings one of these, the driver's probe asks for one of these.
 */
export const RUNSC_VERSIONS = [
  'go-20260905',
  'release-20260907.0',
  'release-20260914.0',
  'release-20260921.0',
] as const
export type RunscVersion = (typeof RUNSC_VERSIONS)[number]
