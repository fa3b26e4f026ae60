import { expect, test } from 'vitest'
import { onceAMinute } from '../../../proxy/telemetry/paced-lines.ts'

test('a line is written at once, and again when a minute has passed since the last one that was', () => {
  let nowMs = 5
  const mayLog = onceAMinute(() => nowMs)
  const written = [0, 1, 59_998, 1, 59_999, 1].map((durationMs) => {
    nowMs += durationMs
    return mayLog()
  })
  expect(written).toEqual([true, false, false, true, false, true])
})
