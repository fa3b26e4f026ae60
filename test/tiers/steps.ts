import { existsSync } from 'node:fs'
import { heavyFiles, randomFiles } from './heavy-files.ts'
import type { FoundSeed } from './seeds.ts'
import type { Step } from './step.ts'

const VITEST = 'npx vitest run'
/** The oldest version that `engines` allows. */
const OLDEST = '.ci/test-on-node 24'
const NPM_TEST = '--project pure --project sockets --project timing'
/** Tests of the project `fault` that measure times or memory. */
const LONG = '--project fault test/contract test/e2e test/long test/repo'
/** Tests of the project `fault` that draw their inputs and measure no time, so that other steps may run beside them. */
const RANDOM = '--project fault test/fault test/property test/wire'
/** Starts processes from sources, as an installation does, instead of from bundles. */
const FROM_SOURCES = { TEST_SOURCES: '1' }
/** Tests that may depend on the version of Node: processes, TLS, HTTP/2. */
const ABOUT_NODE = [
  'process reload command-line connection-end open-files worker-metrics tls tls-ciphers redis-tls pipelining-tls',
  'http2 http2-early-answers http2-held-open http2-leaving http2-pings http2-stream-order http2-upstream h2c grpc',
]
  .flatMap((names) => names.split(' '))
  .map((name) => `test/e2e/${name}.test.ts`)
const longTests = (names: string): string =>
  names
    .split(' ')
    .map((name) => `test/long/${name}.test.ts`)
    .join(' ')
/** A script that builds replacement images. It exists on machines without an image registry. */
export const IMAGES_SCRIPT = '../shared/containers/up'

/** The limit for steps of a change, on a busy machine. It is not a budget, but ends a step that hangs. */
const HANGS_AFTER_MINUTES = 30
/** The limit for the project `fault`, which took 73 minutes on a busy machine. */
const LONG_HANGS_AFTER_MINUTES = 180

const step = (name: string, command: string, limitMinutes: number, rest: Partial<Step> = {}): Step => ({
  name,
  command,
  limitMinutes,
  ...rest,
})
const npmRun = (script: string, limitMinutes: number, rest: Partial<Step> = {}): Step =>
  step(script, `npm run --silent ${script}`, limitMinutes, rest)

const images = (names: string): Step[] =>
  existsSync(IMAGES_SCRIPT) ? [step('base images', `${IMAGES_SCRIPT} ${names}`, HANGS_AFTER_MINUTES)] : []

// The last part takes as long as all others together.
const lint = ['types', 'format', 'imports', 'unused', 'code'].map((part) =>
  npmRun(`lint:${part}`, HANGS_AFTER_MINUTES, { group: 'lint' }),
)

/** The checks that a change must pass: `.ci/run`. They are the same each time. */
export function stepsOfChange(seeds: readonly FoundSeed[]): Step[] {
  return [
    ...lint,
    ...images('haproxy'),
    step('npm test', VITEST, HANGS_AFTER_MINUTES, { tests: NPM_TEST }),
    ...seeds.map(stepOfSeed),
    step('Node 24, sockets', OLDEST, HANGS_AFTER_MINUTES, {
      tests: `--project sockets test/wire ${ABOUT_NODE.join(' ')}`,
      env: FROM_SOURCES,
    }),
    step('Node 24, npm start', OLDEST, HANGS_AFTER_MINUTES, {
      tests: '--project fault test/e2e/start.test.ts',
      env: FROM_SOURCES,
    }),
    step('long', VITEST, HANGS_AFTER_MINUTES, {
      // These tests cannot judge times, or the cost of a lookup, while a process has to wait for a core. They run one after another, with
      // no step beside them.
      tests: `--project fault --no-file-parallelism ${longTests('failover http2-floods large-lists')}`,
    }),
    ...[
      step('Node 24', OLDEST, HANGS_AFTER_MINUTES, { tests: '--project pure' }),
      step('memory and CPU', VITEST, HANGS_AFTER_MINUTES, {
        // Each process counts its own memory, or its own CPU relative to known work that it does meanwhile, so neighbours do not matter.
        tests: `--project fault --no-file-parallelism --maxConcurrency 1 ${longTests('cost-of-a-byte memory-of-a-byte')}`,
        env: { PROPERTY_RUNS: 'tenth' },
      }),
      step('heavy files', VITEST, HANGS_AFTER_MINUTES, {
        tests: `--project fault --no-file-parallelism ${[...heavyFiles, ...randomFiles].join(' ')}`,
        env: { PROPERTY_RUNS: 'tenth', FAULT_HISTORIES: '16', RANDOM_EXCHANGES: '1100' },
      }),
      step('containers', VITEST, HANGS_AFTER_MINUTES, {
        tests: '--project containers test/container/compose.test.ts test/container/images.test.ts',
      }),
      step('apps', VITEST, HANGS_AFTER_MINUTES, {
        tests:
          // With one worker: two take as long again, and what workers share has tests of its own.
          "--project apps -t '^(?!.*two workers)' " +
          ['git', 'socket-io', 'svn', 'docker-registry'].map((name) => `test/apps/${name}.test.ts`).join(' '),
      }),
      step(
        'backends',
        [
          'node test/backends/credentials/run.ts',
          'node test/backends/values/run.ts',
          'node test/backends/bodies/run.ts --only Express --bodies 3000',
          'node test/backends/run.ts --only "Express 5" --only "Fastify 5, lenient" --spellings 4000',
        ].join(' && '),
        HANGS_AFTER_MINUTES,
      ),
      // The last three mostly wait for images, packages and processes, and leave the cores to the others.
    ].map((each) => ({ ...each, group: 'with other software' })),
  ]
}

/** Before a release and every night: `npm run test:all`. */
export function stepsOfAll(seeds: readonly FoundSeed[], seed: number): Step[] {
  // Random tests use a new seed each time, and print it.
  const drawn = { env: { ...FROM_SOURCES, TEST_SEED: String(seed) } }
  const peers = process.env['PEER_SUITES'] ? [step('peers', VITEST, 30, { tests: '--project peers' })] : []
  return [
    ...lint,
    ...images('haproxy nginx caddy prometheus'),
    step('npm test', VITEST, HANGS_AFTER_MINUTES, { tests: NPM_TEST, env: FROM_SOURCES }),
    ...seeds.map(stepOfSeed),
    step('Node 24', OLDEST, HANGS_AFTER_MINUTES, { tests: NPM_TEST, env: FROM_SOURCES }),
    step('long', VITEST, LONG_HANGS_AFTER_MINUTES, { tests: LONG, ...drawn }),
    step('Node 24, long', OLDEST, LONG_HANGS_AFTER_MINUTES, { tests: LONG, ...drawn }),
    npmRun('test:differential', 15),
    npmRun('test:attack', 60),
    step('judges', VITEST, 30, { tests: '--project judges', ...drawn }),
    ...peers,
    ...[
      step('soak', VITEST, 75, { tests: '--project soak', env: { ...drawn.env, SOAK_MINUTES: '60' } }),
      step('random', VITEST, LONG_HANGS_AFTER_MINUTES, { tests: RANDOM, ...drawn }),
      step('Node 24, random', OLDEST, LONG_HANGS_AFTER_MINUTES, { tests: RANDOM, ...drawn }),
      { ...npmRun('test:backends', 120), ...drawn },
      step('apps', VITEST, 60, { tests: '--project apps' }),
      step('containers', VITEST, 60, { tests: '--project containers' }),
    ].map((each) => ({ ...each, group: 'beside the soak' })),
    ...[
      // It installs into the same folders as `apps`.
      step('Node 24, apps', OLDEST, 60, { tests: '--project apps' }),
      { ...npmRun('fuzz', 15), ...drawn },
      npmRun('fuzz:coverage -- 120', 20),
      step('mutations for ten minutes', VITEST, 30, {
        tests: '--project fault test/wire/mutations.test.ts test/wire/random/random.test.ts',
        env: { ...drawn.env, WIRE_RUNS: '2000', RANDOM_EXCHANGES: '300000' },
      }),
    ].map((each) => ({ ...each, group: 'fuzzers' })),
  ]
}

function stepOfSeed({ seed, project, file }: FoundSeed): Step {
  return step(`seed ${seed} of ${file}`, VITEST, HANGS_AFTER_MINUTES, {
    tests: `--project ${project} ${file}`,
    env: { TEST_SEED: String(seed) },
  })
}
