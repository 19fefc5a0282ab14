/** A pool and its trainer in simulated time: how large it has to be is known before it is rented. */
export { createRandom, type Random } from '../simulation/random.ts'
export { drawMs, formatLatency, type Latency, medianMsOf, parseLatency } from './latency.ts'
export {
  type ModelSetting,
  POOL_DEFAULTS,
  type PoolSetting,
  type TrainerSetting,
} from './pool-setting.ts'
export { type PoolBias, type PoolFigures, type PoolInput, simulatePool } from './simulate-pool.ts'
