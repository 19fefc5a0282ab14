import type { Attempt, Run } from '../run/run.ts'

/** An attempt that has just been admitted. */
export function newAttempt(run: Run, atMs: number, queuedMs: number): Attempt {
  return {
    admittedAtMs: atMs,
    policyVersion: run.policyVersion,
    sandbox: null,
    node: null,
    token: null,
    worker: null,
    clock: {
      queuedMs,
      createMs: 0,
      setupMs: 0,
      agentMs: 0,
      modelMs: 0,
      gradeMs: 0,
      teardownMs: 0,
    },
    totalDueMs: null,
    hedged: false,
    agentSinceMs: null,
    downAtMs: run.downMs,
    lagAtMs: 0,
    extendedMs: 0,
    waitAtMs: atMs,
    stopCause: null,
    gradeTries: 0,
    endedIn: null,
    report: null,
    flags: [],
    ending: null,
    releaseTries: 0,
    usage: null,
    leaves: null,
    left: null,
  }
}
