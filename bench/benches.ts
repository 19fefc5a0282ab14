import type { Bench } from './bench.ts'
import { create } from './figures/create.ts'
import { createRate } from './figures/create-rate.ts'

/** Every bench, in the order in which they run. */
export const BENCHES: readonly Bench[] = [create, createRate]
