import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { FailuresReporter } from './test/tiers/failures-reporter.ts'
import { heavyFiles } from './test/tiers/heavy-files.ts'
import { InPathOrder } from './test/tiers/in-path-order.ts'

// Twenty processes run tests, and load the same thousand modules: one compiles them, and the others read what V8 made of them.
process.env['NODE_COMPILE_CACHE'] ??= join(import.meta.dirname, 'node_modules/.cache/compiled-for-tests')

const setupFiles = ['test/support/run/after-file.ts']
const globalSetup = ['test/support/run/global-setup.ts']

/**
 * About CPU or memory, and what a call takes: behind all others, each in a process of its own. They measure what they use themselves, or
 * the fastest of many rounds, which a neighbour on the other core does not change.
 */
const timing = [
  'test/e2e/waiting-responses.test.ts',
  'test/property/{credentials,endless-heads,key-values,target}.test.ts',
  'test/unit/admin/history-turns.test.ts',
  'test/unit/config/file.test.ts',
  'test/unit/http/http2/header-block.test.ts',
  'test/unit/http/message/byte-queue.test.ts',
  'test/unit/limits/conditions/cost-of-conditions.test.ts',
  'test/unit/limits/rules/rule-table.test.ts',
  'test/unit/shared/v8-gc.test.ts',
  'test/wire/long-values.test.ts',
]
/** Modules that are tested with sockets. */
const unitsWithSockets = [
  'test/property/{explain,http2-with-node,sliding}.test.ts',
  'test/unit/app/closed-while-starting.test.ts',
  'test/unit/http/connection/overdue-heads.test.ts',
  'test/unit/http/http1/connection.test.ts',
  'test/unit/names/dns-client.test.ts',
  'test/unit/support/**/*.test.ts',
  'test/unit/http/upstream/{connection,http2-session,pool,probe,prober,resolved-group,write-errors}.test.ts',
]
/** Redis is started and stopped all the time, and the outcome depends on timing: run with the long ones. */
const longWithRedis = [
  'test/contract/redis-cluster.test.ts',
  'test/fault/{broken-replicas,leases,settled}.test.ts',
]
/** Tests about time set their own limits: this one allows for a machine that is busy with something else. */
const patience = { testTimeout: 120_000, hookTimeout: 180_000 }
/** Most tests wait for a process or a window more than they compute: with four at a time two cores are idle for two fifths. */
const maxWorkers = 6

export default defineConfig({
  test: {
    sequence: { sequencer: InPathOrder },
    reporters: ['default', new FailuresReporter()],
    projects: [
      {
        test: {
          name: 'sockets',
          include: ['test/{e2e,wire,contract,integration,fault}/**/*.test.ts', ...unitsWithSockets],
          exclude: [...timing, ...longWithRedis, ...heavyFiles],
          globalSetup,
          setupFiles,
          isolate: false,
          ...patience,
          maxWorkers,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          // Behind "sockets": its files are short, so that all workers end at about the same time.
          name: 'pure',
          include: ['test/{unit,property,repo}/**/*.test.ts'],
          exclude: [...timing, ...unitsWithSockets, ...heavyFiles],
          setupFiles,
          // One process for many files: to start one costs as much as the tests of most of them.
          isolate: false,
          ...patience,
          maxWorkers,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          name: 'timing',
          include: timing,
          globalSetup,
          setupFiles,
          ...patience,
          // No more than two cores have.
          maxWorkers: 2,
          // Of the tests that start processes, which measure their own CPU time.
          maxConcurrency: 2,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          // What takes longer than anybody waits for at each change.
          name: 'fault',
          globalSetup: ['test/support/run/global-setup.ts'],
          setupFiles,
          include: [
            'test/fault/{broken-replicas,leases,random,settled}.test.ts',
            'test/contract/redis-cluster.test.ts',
            'test/wire/random/*.test.ts',
            'test/wire/{held-bodies,mutations,requests,responses}.test.ts',
            'test/e2e/tunnels.test.ts',
            ...heavyFiles,
            'test/property/*.test.ts',
            'test/long/*.test.ts',
          ],
          env: {
            FAULT_HISTORIES: process.env['FAULT_HISTORIES'] ?? '500',
            RANDOM_EXCHANGES: process.env['RANDOM_EXCHANGES'] ?? '100000',
            PROPERTY_RUNS: process.env['PROPERTY_RUNS'] ?? 'all',
            WIRE_RUNS: process.env['WIRE_RUNS'] ?? '200',
            CHUNKED_ANSWERS: process.env['CHUNKED_ANSWERS'] ?? '10000',
          },
          // An end to what hangs, long enough for a busy machine: a test that promises a time measures it.
          testTimeout: 600_000,
          hookTimeout: 120_000,
          // With two at a time two cores are half idle.
          maxWorkers: 3,
          sequence: { groupOrder: 2 },
        },
      },
      {
        test: {
          name: 'soak',
          setupFiles,
          include: ['test/fault/soak/soak.ts'],
          sequence: { groupOrder: 6 },
        },
      },
      {
        test: {
          // Real applications and their clients, which are installed first.
          name: 'apps',
          include: ['test/apps/**/*.test.ts'],
          globalSetup: ['test/apps/setup.ts'],
          setupFiles,
          ...patience,
          maxWorkers: 2,
          sequence: { groupOrder: 3 },
        },
      },
      {
        test: {
          // Suites of other projects, read from where PEER_SUITES says.
          name: 'peers',
          setupFiles,
          include: ['test/peers/**/*.test.ts'],
          ...patience,
          sequence: { groupOrder: 4 },
        },
      },
      {
        test: {
          // Implementations that others wrote, from Debian's packages, read the same bytes.
          name: 'judges',
          include: ['test/judges/**/*.test.ts'],
          setupFiles,
          testTimeout: 600_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: 'containers',
          include: ['test/container/**/*.test.ts'],
          globalSetup: ['test/support/containers/container-setup.ts'],
          setupFiles,
          testTimeout: patience.testTimeout,
          // An end to what hangs: on a busy machine images take five minutes to build.
          hookTimeout: 900_000,
          fileParallelism: false,
          sequence: { groupOrder: 5 },
        },
      },
    ],
  },
})
