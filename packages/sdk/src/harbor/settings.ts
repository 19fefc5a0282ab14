/** `task.toml`, as the format's versions 1.0 to 1.4 have it. Names and defaults are the format's. */
import { z } from 'zod'

const seconds = z.number().finite().positive('takes no time: give seconds above 0')
const whole = z.number().int('is no whole number')
const names = z.record(z.string(), z.string('is no text: put it in quotation marks'))
/** An older way to write a size: `2G`, `512M`. */
const shortSize = z
  .string()
  .regex(/^\s*\d+(\.\d+)?\s*[kmg]\s*$/i, 'is no size such as "2G" or "512M"')
const user = z.union([z.string().min(1), whole.min(0)])
const networkMode = z.enum(['public', 'no-network', 'allowlist'])
const hosts = z.array(z.string())

export const environment = z.strictObject({
  build_timeout_sec: seconds.default(600),
  docker_image: z.string().min(1).optional(),
  os: z.string().optional(),
  cpus: z.number().positive().optional(),
  memory_mb: whole.positive().optional(),
  storage_mb: whole.positive().optional(),
  memory: shortSize.optional(),
  storage: shortSize.optional(),
  gpus: whole.min(0).optional(),
  gpu_types: z.array(z.string()).optional(),
  tpu: z.unknown().optional(),
  allow_internet: z.boolean().optional(),
  network_mode: networkMode.optional(),
  allowed_hosts: hosts.optional(),
  mcp_servers: z.array(z.unknown()).optional(),
  env: names.default({}),
  skills_dir: z.string().optional(),
  healthcheck: z.unknown().optional(),
  workdir: z.string().startsWith('/', 'is no absolute path').optional(),
})

const phase = {
  user: user.optional(),
  network_mode: networkMode.optional(),
  allowed_hosts: hosts.optional(),
}

const agent = z.strictObject({ ...phase, timeout_sec: seconds.optional() })

const verifier = z.strictObject({
  ...phase,
  timeout_sec: seconds.optional(),
  env: names.default({}),
  environment_mode: z.enum(['shared', 'separate']).optional(),
  environment: environment.optional(),
  collect: z.array(z.unknown()).optional(),
})

const artifacts = z.array(
  z.union([
    z.string().min(1),
    z.strictObject({
      source: z.string().min(1),
      destination: z.string().optional(),
      exclude: z.array(z.string()).optional(),
      service: z.string().optional(),
    }),
  ]),
)

const step = z.strictObject({
  name: z
    .string()
    .regex(
      /^[A-Za-z0-9][A-Za-z0-9._-]*$/,
      'is no name of a folder: letters, digits, dots, dashes and underscores',
    ),
  agent: agent.prefault({}),
  verifier: verifier.prefault({}),
  min_reward: z.union([z.number(), z.record(z.string(), z.number())]).optional(),
  healthcheck: z.unknown().optional(),
  artifacts: artifacts.default([]),
})

export const settings = z.strictObject({
  /** Of version 1.0; the later ones say `schema_version`. */
  version: z.string('is no text: put it in quotation marks').optional(),
  schema_version: z.string('is no text: put it in quotation marks').optional(),
  task: z.looseObject({ name: z.string().optional() }).optional(),
  metadata: z.record(z.string(), z.unknown()).optional(),
  source: z.string().optional(),
  environment: environment.prefault({}),
  agent: agent.prefault({}),
  verifier: verifier.prefault({}),
  solution: z.strictObject({ env: names.default({}) }).prefault({}),
  steps: z.array(step).optional(),
  artifacts: artifacts.default([]),
  multi_step_reward_strategy: z.enum(['mean', 'final']).optional(),
  /** What it was called before 1.3. */
  multi_step_reward_mode: z.unknown().optional(),
})

export type Settings = z.output<typeof settings>
export type EnvironmentSettings = Settings['environment']
export type VerifierSettings = Settings['verifier']
export type PhaseSettings = Pick<Settings['agent'], 'network_mode' | 'allowed_hosts' | 'user'>
export type StepSettings = NonNullable<Settings['steps']>[number]
