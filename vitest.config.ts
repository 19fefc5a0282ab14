import { configDefaults, defineConfig } from 'vitest/config'

/** Files that start real sandboxes: they run after all others, two at a time, since each waits much for a sandbox of its own. */
const onGvisor = [
  'e2e/*.test.ts',
  'packages/runtime/src/gvisor/{checkpoint,conformance,difference,disk,driver,reconcile,recover,relay}.test.ts',
]

export default defineConfig({
  test: {
    // They end what hangs. What a busy machine takes for twenty processes one after another is no hang.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    // What is waited for comes, however slow the machine is: the bound is there for what hangs.
    expect: { poll: { timeout: 50_000 } },
    // The process that hands out the files has next to nothing to do itself.
    maxWorkers: '100%',
    projects: [
      {
        extends: true,
        test: {
          name: 'units',
          include: ['packages/*/src/**/*.test.ts', 'docs/**/*.test.ts', 'e2e/sdk/*.test.ts'],
          exclude: [...configDefaults.exclude, ...onGvisor],
        },
      },
      {
        extends: true,
        test: {
          name: 'sandboxes',
          include: onGvisor,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
})
