import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { beforeAll, expect, test } from 'vitest'
import { atEnd } from '../support/run/at-end.ts'
import { spawnCommand } from '../support/gateway/process.ts'
import type { SilentNamesReport } from '../support/network/silent-names-process.ts'

const namespace = `sluice-${process.pid}`
const files = `/etc/netns/${namespace}`

/** Makes a network namespace with a name server and a hosts file, which `ip netns exec` puts in place of the machine's. */
beforeAll(() => {
  try {
    mkdirSync(files, { recursive: true })
    writeFileSync(`${files}/resolv.conf`, 'nameserver 127.0.0.53\n')
    writeFileSync(`${files}/hosts`, '127.0.0.1 localhost\n127.0.0.1 hosted.test\n')
    execFileSync('ip', ['netns', 'add', namespace], { stdio: 'pipe' })
    execFileSync('ip', ['-n', namespace, 'link', 'set', 'lo', 'up'], { stdio: 'pipe' })
  } catch (error) {
    throw new Error(
      'this test needs root and iproute2, to make a network namespace with a silent name server',
      {
        cause: error,
      },
    )
  }
  atEnd(() => {
    execFileSync('ip', ['netns', 'delete', namespace])
    rmSync(files, { recursive: true })
  })
})

const token = { key: 'jwt:sub', requests: 10, window: '1m' }

/** Settings of a gateway with a name that no name server answers for. */
const cases: readonly (readonly [string, { file?: unknown; env?: Record<string, string>; ask?: boolean }])[] =
  [
    ['none but in a route that nobody asks for', {}],
    ['in a route that is asked twice a second', { ask: true }],
    [
      'in a route that is probed',
      {
        file: {
          routes: [
            {
              name: 'probed',
              paths: ['/probed/*'],
              upstream: 'http://dead.test',
              health: { path: '/', every: '1s' },
            },
          ],
        },
      },
    ],
    ['of Redis', { env: { REDIS_URL: 'redis://dead.test' } }],
    ['of a collector of spans', { env: { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://dead.test:4318' } }],
    [
      'of a key set',
      {
        file: {
          jwt: { jwksUrl: 'http://dead.test/keys', audience: 'a', issuer: 'i' },
          limits: [{ name: 'token', match: 'GET /none', ...token }],
        },
      },
    ],
    ['of trusted proxies', { file: { trustedProxies: ['dead.test', 'dead2.test', 'dead3.test'] } }],
  ]

test.each(cases)(
  'healthy backends are served at their usual pace with a dead name %s',
  async (_, settings) => {
    const command = [
      'netns',
      'exec',
      namespace,
      process.execPath,
      'test/support/network/silent-names-process.ts',
    ]
    const inside = spawnCommand('ip', {}, [...command, JSON.stringify(settings)])
    const [line] = await inside.waitForLine(/^\{"answered".*$/, 100_000)
    expect(await inside.exit).toBe(0)
    const report = JSON.parse(line) as SilentNamesReport
    const usualMs = report['address']?.p99Ms ?? 0
    for (const { requests, failed, p99Ms } of Object.values(report)) {
      expect(requests).toBeGreaterThan(20)
      expect(failed).toEqual([])
      // For a request that waited for a name, it would be five seconds more.
      expect(p99Ms).toBeLessThan(usualMs + 2_000)
    }
  },
  120_000,
)
