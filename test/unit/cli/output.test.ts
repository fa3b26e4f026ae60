import { expect, test } from 'vitest'
import { formatDuration } from '../../../proxy/cli/output.ts'

test.for([
  [0, '0s'],
  [8.2, '9s'],
  [59.5, '1m'],
  [896.911, '14m 57s'],
  [3_600, '1h'],
  [3_661, '1h 1m'],
  [86_398.9, '23h 59m'],
  [86_399.5, '1d'],
  [31_536_000, '365d'],
  [90_000, '1d 1h'],
  [null, '-'],
  [Number.NaN, '-'],
] as const)('%s seconds are written %s', ([seconds, written]) => {
  expect(formatDuration(seconds)).toBe(written)
})
