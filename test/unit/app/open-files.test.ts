import { describe, expect, test } from 'vitest'
import {
  adminConnectionsWithin,
  fitToOpenFiles,
  readOpenFilesLimit,
} from '../../../proxy/app/observe/open-files.ts'

const usual = { maxConnections: 10_000, upstreamConnections: 256, upstreamStreams: 10_000, port: 80 }

test('the limit is read, from /proc and from a report of Node alike', () => {
  expect(readOpenFilesLimit()).toBeGreaterThan(20)
  expect(readOpenFilesLimit('/nowhere')).toBe(readOpenFilesLimit())
})

describe('connections', () => {
  test.each([undefined, 20_576, 1_048_576])(
    'the connection limits are left as set where the limit of open files is %s',
    (limit) => {
      expect(fitToOpenFiles(usual, limit)).toEqual({ settings: usual, warnings: [] })
      expect(adminConnectionsWithin(limit)).toBe(256)
    },
  )

  test.each([
    [20_575, 9_999],
    [17_300, 6_724],
  ])('within %i open files, streams get %i without a warning', (limit, upstreamStreams) => {
    expect(fitToOpenFiles(usual, limit)).toEqual({ settings: { ...usual, upstreamStreams }, warnings: [] })
  })

  test.each([
    [10_000, 5_654, 256, 3_770],
    [4_096, 2_112, 256, 1_408],
    [1_024, 403, 224, 269],
    [256, 79, 44, 53],
    [64, 1, 1, 0],
  ])(
    'are reduced to fit within %i open files',
    (limit, maxConnections, upstreamConnections, upstreamStreams) => {
      const { settings, warnings } = fitToOpenFiles(usual, limit)
      expect(settings).toEqual({ maxConnections, upstreamConnections, upstreamStreams, port: 80 })
      expect(warnings).toEqual([
        `the limit of open files is ${limit} (ulimit -n) and the settings can need ` +
          `20576: using MAX_CONNECTIONS=${maxConnections}, ` +
          `UPSTREAM_CONNECTIONS=${upstreamConnections}, UPSTREAM_STREAMS=${upstreamStreams}. Raise the limit ` +
          "(ulimit -n, systemd's LimitNOFILE, docker run --ulimit nofile=…) or lower these settings",
      ])
    },
  )

  test('with as many open files as a warning says, nothing is reduced', () => {
    const { warnings } = fitToOpenFiles(usual, 1_024)
    const [, needed] = /can need (\d+)/.exec(warnings[0] ?? '') ?? []
    expect(fitToOpenFiles(usual, Number(needed)).settings).toEqual(usual)
  })

  test('the connection limits hold for each server of each route, and for upstream where it is given', () => {
    const route = (upstream: string[]) => ({ name: 'r', upstream, balance: 'round-robin' as const })
    const routes = [route(['http://a', 'http://b']), route(['http://c'])]
    const fitted = fitToOpenFiles({ ...usual, routes, hasFallback: true }, 4_096)
    expect(fitted.settings).toMatchObject({
      maxConnections: 1_699,
      upstreamConnections: 236,
      upstreamStreams: 283,
    })
    expect(fitted.warnings[0]).toContain('can need 51344 for 4 servers')
    expect(fitToOpenFiles({ ...usual, routes, hasFallback: false }, 41_088).warnings).toEqual([])
  })

  test('client connections count for each of two listeners', () => {
    const fitted = fitToOpenFiles({ ...usual, decisionsPort: 8081 }, 4_096)
    expect(fitted.settings).toMatchObject({
      maxConnections: 1_056,
      upstreamConnections: 256,
      upstreamStreams: 1_408,
    })
    expect(fitted.warnings[0]).toContain('can need 30576')
  })

  test('the connection limits never exceed the limit of open files in total, nor each its setting', () => {
    for (let limit = 128; limit < 30_000; limit += 61) {
      const { settings } = fitToOpenFiles(usual, limit)
      const { maxConnections, upstreamConnections, upstreamStreams } = settings
      const all = maxConnections + upstreamConnections + upstreamStreams + adminConnectionsWithin(limit) + 64
      expect(all).toBeLessThanOrEqual(limit)
      expect(maxConnections).toBeLessThanOrEqual(usual.maxConnections)
      expect(upstreamConnections).toBeLessThanOrEqual(usual.upstreamConnections)
      expect(upstreamStreams).toBeLessThanOrEqual(usual.upstreamStreams)
    }
  })
})
