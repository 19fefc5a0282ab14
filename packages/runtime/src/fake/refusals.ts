import { DriverError, type Fate } from '../driver.ts'

export function unsupported(what: string): DriverError {
  return new DriverError('unsupported', `this driver has no ${what}`, { hint: 'use create' })
}

export function gone(hostId: string, fate: Fate | undefined): DriverError {
  const how = fate ? `${fate.kind}: ${fate.detail}` : 'stopped before'
  return new DriverError('sandbox_gone', `sandbox ${hostId} is gone (${how})`, {
    hint: 'start another one',
    ...(fate ? { fate } : {}),
  })
}
