/** What the fake driver's sandboxes do. */
import type { FakeReply, FakeScript } from '@sandlot/runtime'

/** The program that stands for all that an episode can do there. */
export const FAKE_ACTS = 'act'

const REPLIES: Readonly<Record<string, FakeReply>> = {
  loop: { hangs: true },
  oom: { dies: 'oom_limit' },
  lose: { dies: 'lost' },
}

export const fakeActs: FakeScript = ({ argv: [name, what = ''] }) =>
  (name === FAKE_ACTS ? REPLIES[what] : undefined) ?? {}
