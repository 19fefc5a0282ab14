import { z } from 'zod'
import { command } from './exec.ts'
import { commandFields } from './grade.ts'
import { LIMITS } from './limits.ts'
import { rewardSource } from './reward-source.ts'

const modelUrl = z
  .url({ protocol: /^https?$/, error: 'not an http:// or https:// address', abort: true })
  .max(LIMITS.pathBytes)
  .refine((text) => {
    const { username, password, search, hash } = new URL(text)
    return username + password + search + hash === ''
  }, 'a base address: no user, no query and no fragment')

/** The command that is an episode: the daemon runs it, and no client has to be there. */
export const programSpec = z
  .object({
    command,
    /** `files` are brought before it starts. */
    ...commandFields,
    /** An endpoint that it finds on its loopback, whatever its network: its calls are off the agent's clock. */
    model: z.object({ url: modelUrl }).strict().optional(),
    /** Where its verdict is, in a run without a grader. Default: its exit code. Refused beside a grader. */
    reward: rewardSource.optional(),
  })
  .strict()
export type ProgramSpec = z.infer<typeof programSpec>

/** Where a program, and its grade command, find the task as JSON. */
export const TASK_FILE = '/run/sandlot/task.json'

/** What a program and its grade command are told by their environment. */
export const PROGRAM_ENV = {
  taskFile: 'SANDLOT_TASK_FILE',
  run: 'SANDLOT_RUN',
  episode: 'SANDLOT_EPISODE',
  key: 'SANDLOT_KEY',
  group: 'SANDLOT_GROUP',
  member: 'SANDLOT_MEMBER',
  attempt: 'SANDLOT_ATTEMPT',
  seed: 'SANDLOT_SEED',
  policyVersion: 'SANDLOT_POLICY_VERSION',
  modelUrl: 'SANDLOT_MODEL_URL',
} as const

/** Artifacts that an attempt of a program leaves: the ends of what its commands said, where they said something. */
export const OUTPUT_ARTIFACTS = {
  agentStdout: 'agent.stdout',
  agentStderr: 'agent.stderr',
  gradeStdout: 'grade.stdout',
  gradeStderr: 'grade.stderr',
} as const
