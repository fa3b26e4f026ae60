import { defineConfig } from 'vitest/config'

const setupFiles = ['test/support/run/after-file.ts']

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'fast',
          include: ['test/**/*.test.ts'],
          exclude: [
            '**/node_modules/**',
            'test/container/**',
            'test/long/**',
            'test/apps/**',
            'test/peers/**',
            // Redis is started and stopped all the time: with the long ones.
            'test/fault/{broken-replicas,settled}.test.ts',
            'test/contract/redis-cluster.test.ts',
          ],
          globalSetup: ['test/support/run/global-setup.ts'],
          setupFiles,
          // One process for many files: to start one costs as much as the tests of most of them.
          isolate: false,
          // What is about time says so itself: this is for a machine that is busy with something else.
          testTimeout: 60_000,
          hookTimeout: 120_000,
          // Most tests wait for a process or a window more than they compute: measured on two cores, three at a time
          // take half as long as vitest's own choice of one a core but one.
          maxWorkers: 3,
        },
      },
      {
        test: {
          // What takes longer than anybody waits for at each change.
          name: 'fault',
          globalSetup: ['test/support/run/global-setup.ts'],
          setupFiles,
          include: [
            'test/fault/{broken-replicas,random,settled}.test.ts',
            'test/contract/redis-cluster.test.ts',
            'test/wire/random/*.test.ts',
            'test/wire/{held-bodies,mutations}.test.ts',
            'test/property/*.test.ts',
            'test/long/*.test.ts',
          ],
          env: {
            FAULT_HISTORIES: process.env['FAULT_HISTORIES'] ?? '500',
            RANDOM_EXCHANGES: process.env['RANDOM_EXCHANGES'] ?? '100000',
            PROPERTY_RUNS: 'all',
            WIRE_RUNS: process.env['WIRE_RUNS'] ?? '200',
            CHUNKED_ANSWERS: process.env['CHUNKED_ANSWERS'] ?? '10000',
          },
          testTimeout: 120_000,
          hookTimeout: 60_000,
          // With two at a time two cores are half idle.
          maxWorkers: 3,
        },
      },
      { test: { name: 'soak', setupFiles, include: ['test/fault/soak/soak.ts'] } },
      {
        test: {
          // Real applications and their clients, which are installed first.
          name: 'apps',
          include: ['test/apps/**/*.test.ts'],
          globalSetup: ['test/apps/setup.ts'],
          setupFiles,
          testTimeout: 120_000,
          hookTimeout: 120_000,
          maxWorkers: 2,
        },
      },
      {
        test: {
          // Suites of other projects, read from where PEER_SUITES says.
          name: 'peers',
          setupFiles,
          include: ['test/peers/**/*.test.ts'],
          testTimeout: 30_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: 'containers',
          include: ['test/container/**/*.test.ts'],
          globalSetup: ['test/support/containers/container-setup.ts'],
          setupFiles,
          testTimeout: 60_000,
          hookTimeout: 300_000,
          fileParallelism: false,
        },
      },
    ],
  },
})
