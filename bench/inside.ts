/**
 * The parts of the product that no package exports and that are measured on their own. Only this file reaches into a
 * package.
 */

export type { CgroupLeaf, Cgroups, LeafLimits } from '../packages/runtime/src/cgroup/cgroups.ts'
export { detectCgroups } from '../packages/runtime/src/cgroup/detect.ts'
export { agentImage } from '../packages/runtime/src/gvisor/agent-image.ts'
export { bundleConfig } from '../packages/runtime/src/gvisor/bundle.ts'
export type { LaunchRequest } from '../packages/runtime/src/gvisor/helper.ts'
export { Coordinator } from '../packages/server/src/coordinator/coordinator.ts'
export { Checkpoints } from '../packages/server/src/node/checkpoints.ts'
export { Node } from '../packages/server/src/node/node.ts'
