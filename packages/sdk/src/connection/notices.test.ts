import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type Notice, Notices } from './notices.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }))
afterEach(() => void vi.useRealTimers())

function listen() {
  const said: Notice['kind'][] = []
  return { said, notices: new Notices(({ kind }) => said.push(kind)) }
}

test('an outage is said once, and its end once, however many calls meet it', () => {
  const { said, notices } = listen()
  for (let call = 0; call < 20; call++) {
    notices.lost(new Error('refused'))
    vi.advanceTimersByTime(200)
  }
  expect(said).toEqual(['daemon_away'])
  for (let call = 0; call < 3; call++) notices.met()
  expect(said).toEqual(['daemon_away', 'daemon_back'])
})

test('a connection that broke and was opened again at once is no news', () => {
  const { said, notices } = listen()
  for (let times = 0; times < 10; times++) {
    for (let call = 0; call < 100; call++) notices.lost(new Error('broken'))
    vi.advanceTimersByTime(500)
    notices.met()
  }
  expect(said).toEqual([])
})

test('a drain is said once until the daemon was away', () => {
  const { said, notices } = listen()
  notices.draining()
  notices.draining()
  notices.lost(new Error('refused'))
  vi.advanceTimersByTime(2_000)
  notices.lost(new Error('refused'))
  notices.met()
  notices.draining()
  expect(said).toEqual(['daemon_draining', 'daemon_away', 'daemon_back', 'daemon_draining'])
})

test('without a listener it is a warning of the process', async () => {
  const warned = new Promise<Error>((resolve) => process.once('warning', resolve))
  new Notices(undefined).draining()
  expect(await warned).toMatchObject({ name: 'SandlotNotice', message: /draining/ })
})

test('a process that stood still is told, one that runs late is not', () => {
  const said: string[] = []
  const notices = new Notices(({ message }) => said.push(message))
  notices.ranLate(5_000)
  expect(said).toEqual([])
  notices.ranLate(72_000)
  expect(said).toEqual([
    expect.stringMatching(/stood still for 1.2m: .* silent for 1m loses its attempts/),
  ])
})
