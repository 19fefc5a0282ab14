import { expect, test } from 'vitest'
import { bootstrapScript, placeOf, repository } from './config.ts'

test('without any variable everything has its place', () => {
  expect(placeOf({}, '/home/me')).toEqual({
    cacheDirectory: '/home/me/.cache/sandlot',
    nativeDirectory: `${repository}/native`,
    cargoHome: '/home/me/.cache/sandlot/cargo',
    cargoConfig: '/home/me/.cargo/config.toml',
    searchPath: '/usr/local/bin:/usr/bin:/bin:/usr/local/go/bin:/home/me/.cargo/bin',
    pythonIndex: 'https://pypi.org/simple',
    gvisorReleases: 'https://storage.googleapis.com/gvisor/releases/release',
  })
  expect(bootstrapScript).toBe(`${repository}/sandlot`)
})

test('each variable has its say', () => {
  const place = placeOf(
    {
      PATH: '/mine',
      XDG_CACHE_HOME: '/cache',
      SANDLOT_RUNSC: '/my/runsc',
      SANDLOT_AGENT: '/my/agent',
      SANDLOT_HELPER: '/my/helper',
      SANDLOT_RUN_DIRECTORY: '/my/run',
      PIP_INDEX_URL: 'https://index.example.org/simple',
    },
    '/home/me',
  )
  expect(place).toMatchObject({
    cacheDirectory: '/cache/sandlot',
    searchPath: '/mine:/usr/local/go/bin:/home/me/.cargo/bin',
    runscGiven: '/my/runsc',
    nativeGiven: { agent: '/my/agent', helper: '/my/helper' },
    runDirectory: '/my/run',
    pythonIndex: 'https://index.example.org/simple',
  })
})

test('an empty variable counts as none, a relative cache too', () => {
  const empty = {
    XDG_CACHE_HOME: '',
    SANDLOT_RUNSC: '',
    SANDLOT_RUN_DIRECTORY: '',
    PIP_INDEX_URL: '',
  }
  expect(placeOf({ PATH: '/usr/bin', ...empty }, '/home/me')).toEqual(
    placeOf({ PATH: '/usr/bin' }, '/home/me'),
  )
  const { cacheDirectory } = placeOf({ XDG_CACHE_HOME: 'relative' }, '/home/me')
  expect(cacheDirectory).toBe('/home/me/.cache/sandlot')
})

test('a cargo home that is set has its own configuration', () => {
  const { cargoHome, cargoConfig } = placeOf({ CARGO_HOME: '/my/cargo' }, '/home/me')
  expect({ cargoHome, cargoConfig }).toEqual({ cargoHome: '/my/cargo', cargoConfig: undefined })
})

test('agent and helper are taken together or not at all', () => {
  expect(placeOf({ SANDLOT_AGENT: '/my/agent' }, '/home/me').nativeGiven).toBeUndefined()
})
