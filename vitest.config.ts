import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'fast',
          include: ['test/**/*.test.ts'],
          exclude: ['test/container/**'],
          globalSetup: ['test/support/global-setup.ts'],
          testTimeout: 20_000,
          hookTimeout: 60_000,
          // Most tests wait for a process or a window more than they compute: measured on two cores, three at a time
          // take half as long as vitest's own choice of one a core but one.
          maxWorkers: 3,
        },
      },
      {
        test: {
          name: 'containers',
          include: ['test/container/**/*.test.ts'],
          globalSetup: ['test/support/container-setup.ts'],
          testTimeout: 60_000,
          hookTimeout: 300_000,
          fileParallelism: false,
        },
      },
    ],
  },
})
