/** What the fake driver's sandboxes do. */
import type { FakeCommand, FakeReply, FakeScript } from '@sandlot/runtime'

/** The program that stands for all that an episode can do there, one act after another. */
export const FAKE_ACTS = 'act'

export const ACTS = [
  ...(['loop', 'oom', 'lose', 'multiply', 'fill', 'kill-all'] as const),
  ...(['idle', 'right', 'wrong', 'grade', 'missing'] as const),
]
export type FakeAct = (typeof ACTS)[number]

const ANSWER = '/work/answer'
const RIGHT = '42'

const REPLIES: Partial<Record<FakeAct, (command: FakeCommand) => FakeReply>> = {
  loop: () => ({ hangs: true }),
  oom: () => ({ dies: 'oom_limit' }),
  lose: () => ({ dies: 'lost' }),
  missing: () => ({ exitCode: 127 }),
  right: ({ files }) => answered(files, RIGHT),
  wrong: ({ files }) => answered(files, '41'),
  grade: ({ files }) => ({
    exitCode: String(Buffer.from(files.bytes(ANSWER) ?? [])) === RIGHT ? 0 : 1,
  }),
}

export const fakeActs: FakeScript = (command) => {
  const [name, ...acts] = command.argv
  if (name !== FAKE_ACTS) return {}
  let reply: FakeReply = {}
  for (const act of acts) reply = REPLIES[act as FakeAct]?.(command) ?? {}
  return reply
}

function answered(files: FakeCommand['files'], text: string): FakeReply {
  files.put(ANSWER, text)
  return {}
}
