import { expect, test } from 'vitest'
import { gpuDriverRefused } from './gpu-driver.ts'

test('a driver that the runtime does not know is named, with where the known ones are', () => {
  const log =
    '{"msg":"creating container: cannot create sandbox: registering nvproxy driver: unsupported Nvidia driver version: 999.1","level":"error"}'
  const error = gpuDriverRefused(log)
  expect(error?.code).toBe('gpu_driver_unsupported')
  expect(error?.message).toMatch(/unsupported Nvidia driver version: 999\.1$/)
  expect(error?.hint).toContain('runsc nvproxy list-supported-drivers')
})

test('what is about something else is left alone', () => {
  expect(gpuDriverRefused('{"msg":"cannot open mount: no such file"}')).toBeUndefined()
})
