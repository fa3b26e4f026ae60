/**
 * Test files that take two to ten seconds of CPU each, for parts that seldom change. `npm test` leaves them to `.ci/run`, which runs them
 * beside the containers.
 */
export const heavyFiles: readonly string[] = [
  'test/e2e/keys.test.ts',
  'test/e2e/origin.test.ts',
  'test/e2e/presets.test.ts',
  'test/e2e/recipes.test.ts',
  'test/e2e/reload-whole.test.ts',
  'test/e2e/replay.test.ts',
  'test/e2e/start.test.ts',
  'test/e2e/tutorial.test.ts',
  'test/repo/generated.test.ts',
  'test/repo/kubernetes.test.ts',
]

/** Tests with random faults and requests. `npm test` plays half as many as `.ci/run`, and the long tests many times more. */
export const randomFiles: readonly string[] = ['test/fault/random.test.ts', 'test/wire/random/random.test.ts']
