/**
 * Test files that take from four to ten seconds of CPU each and find few mistakes: `npm test` leaves them to `.ci/run`, which has them
 * beside the containers.
 */
export const heavyFiles: readonly string[] = [
  'test/e2e/presets.test.ts',
  'test/e2e/reload-whole.test.ts',
  'test/e2e/replay.test.ts',
  'test/e2e/tutorial.test.ts',
  'test/repo/generated.test.ts',
]
