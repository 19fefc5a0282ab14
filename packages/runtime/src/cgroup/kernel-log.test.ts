import { expect, test } from 'vitest'
import { oomDomain } from './kernel-log.ts'

const record = (details: string) =>
  `4,1187,4881828675,-;oom-kill:constraint=${details},task=exe,pid=31710,uid=0\n`
const GROUP = '/docker/c0/sandlot-1/abc'
const memcg = (oom: string) =>
  record(
    `CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=${oom},task_memcg=${GROUP}`,
  )

test.each([
  ['at its own limit', [memcg(GROUP)], 'own'],
  ['at one above', [memcg('/docker/c0/sandlot-1')], 'above'],
  [
    'for the machine',
    [
      record(
        `CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=${GROUP}`,
      ),
    ],
    'above',
  ],
  ['first for others, then for itself', [memcg('/docker'), memcg(GROUP)], 'above'],
  ['not at all', ['6,1,1,-;eth0: link up\n', memcg(GROUP).replaceAll('/abc', '/abcd')], undefined],
])('a kill %s', (_, lines, domain) => {
  expect(oomDomain('abc', () => lines)).toBe(domain)
})
