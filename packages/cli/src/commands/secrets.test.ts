import { afterEach, expect, test, vi } from 'vitest'
import { setSecretCommand } from './secrets.ts'

afterEach(() => {
  vi.unstubAllEnvs()
})

test('of an endless file no more is read than tells that it is too long', async () => {
  // Nothing can be asked there.
  vi.stubEnv('SANDLOT_URL', 'http://127.0.0.1:1')
  vi.stubEnv('SANDLOT_API_KEY', 'sk_none')
  await expect(setSecretCommand('openai', { file: '/dev/zero' })).rejects.toThrow('127.0.0.1:1')
})

test('a file that is not there is named', async () => {
  await expect(setSecretCommand('openai', { file: '/none/such' })).rejects.toMatchObject({
    code: 'local_file_failed',
    message: expect.stringContaining('/none/such'),
  })
})
