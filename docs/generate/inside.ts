/** The parts of the product that no package exports and that the documents describe. Only this file reaches into a package. */

export { makeProgram } from '../../packages/cli/src/program.ts'
export { CORE_LIMITS, OUTCOME_RULES, type OutcomeRule } from '../../packages/core/src/index.ts'
export * as engineLimits from '../../packages/engine/src/limits.ts'
export { GUEST_LIMITS } from '../../packages/runtime/src/guest/limits.ts'
export { imageLimits } from '../../packages/runtime/src/image/limits.ts'
export { RUNTIME_LIMITS } from '../../packages/runtime/src/limits.ts'
export { COORDINATOR_LIMITS } from '../../packages/server/src/coordinator/limits.ts'
export { scopeOf } from '../../packages/server/src/http/scopes.ts'
export { SERVER_LIMITS } from '../../packages/server/src/limits.ts'
export { watch } from '../../packages/server/src/metrics/gauges.ts'
export { Metrics } from '../../packages/server/src/metrics/metrics.ts'
export { VERSION } from '../../packages/server/src/version.ts'
