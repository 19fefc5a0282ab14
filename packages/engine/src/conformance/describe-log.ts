import { describe } from 'vitest'
import { describeLogAppend } from './describe-log-append.ts'
import { describeLogKeep } from './describe-log-keep.ts'
import { describeLogRead, describeLogTail } from './describe-log-read.ts'
import type { MakeEngine } from './engine-under-test.ts'

/** What every log must do. */
export function describeLog(makeEngine: MakeEngine): void {
  describe('log', () => {
    describeLogAppend(makeEngine)
    describeLogRead(makeEngine)
    describeLogTail(makeEngine)
    describeLogKeep(makeEngine)
  })
}
