import { idOf } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { episodeId, episodeIndex } from './episode-id.ts'

const RUN = 'rn_abcdefghij0123456789'

test.each([0, 35, 36, 99_999, 36 ** 7 - 1])(
  'episode %d has an id that leads back to it',
  (index) => {
    const id = episodeId(RUN, index)
    expect(idOf('episode').safeParse(id).success).toBe(true)
    expect(episodeIndex(RUN, id)).toBe(index)
  },
)

test.each(['', 'ep_', 'ep_zzzzzzzzzzzzz0000000', 'ep_abcdefghij012......'])(
  '%j is not one of the run',
  (id) => {
    expect(episodeIndex(RUN, id)).toBeUndefined()
  },
)
