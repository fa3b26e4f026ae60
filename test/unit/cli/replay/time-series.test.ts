import { expect, test } from 'vitest'
import { TimeSeries } from '../../../../proxy/cli/replay/time-series.ts'

const start = Date.UTC(2026, 2, 1)

function seriesOf(seconds: number): TimeSeries {
  const series = new TimeSeries(2)
  for (let second = 0; second < seconds; second++) {
    series.add(0, start + 300 + second * 1000, second % 2 === 0)
    if (second % 3 === 0) series.add(1, start + 300 + second * 1000, false)
  }
  return series
}

test('a time series is empty before the first request', () => {
  const { fromMs, widthMs } = new TimeSeries(1)
  expect([fromMs, widthMs]).toEqual([undefined, 1000])
  expect(new TimeSeries(1).read(0)).toEqual({ requests: [], refused: [] })
})

// At most 240 buckets.
test.each([
  [10, 1, 10],
  [240, 1, 240],
  [241, 2, 121],
  [1000, 8, 125],
  [100_000, 512, 196],
])('%i seconds are in buckets of %i s: %i of them, with every request in one', (seconds, widthS, buckets) => {
  const series = seriesOf(seconds)
  const { requests, refused } = series.read(0)
  expect([series.fromMs, series.widthMs, requests.length]).toEqual([start, widthS * 1000, buckets])
  // One request a second, every other one refused.
  expect(requests.slice(0, -1)).toEqual(Array<number>(buckets - 1).fill(widthS))
  expect(requests.reduce((sum, count) => sum + count)).toBe(seconds)
  expect(refused.reduce((sum, count) => sum + count)).toBe(Math.ceil(seconds / 2))
  expect(series.read(1).requests.reduce((sum, count) => sum + count)).toBe(Math.ceil(seconds / 3))
})
