/** Core in a simulated world, one seed at a time: for the test suite and for an endless search. */
export { BrokenInvariant } from './invariants.ts'
export { type Simulated, simulate } from './simulate.ts'
