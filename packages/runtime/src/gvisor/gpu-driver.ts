import { DriverError } from '../driver-error.ts'

/** The runtime's own words where it knows nothing of the machine's GPU driver, or finds none. */
const REFUSED =
  /(unsupported|failed to (?:get|determine|load)[^"]*?) ?(?:Nvidia|NVIDIA|nvidia) ?(?:GPU )?driver[^"\n]*/i

/** What the runtime logged, as an error that says what to do; undefined where it is about something else. */
export function gpuDriverRefused(log: string): DriverError | undefined {
  const [said] = REFUSED.exec(log) ?? []
  if (said === undefined) return undefined
  return new DriverError(
    'gpu_driver_unsupported',
    `the runtime can’t use this machine’s GPU driver: ${said.trim().slice(0, 300)}`,
    {
      hint: 'install a driver of a version that `runsc nvproxy list-supported-drivers` names, or a newer runsc',
    },
  )
}
