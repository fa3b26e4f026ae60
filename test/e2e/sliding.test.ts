import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { startBackend } from '../support/backend.ts'
import { startGateway } from '../support/gateway.ts'
import { freshRedis } from '../support/redis.ts'
import { writeConfigFile } from '../support/temporary-directory.ts'

const limits = 'limits: [{ name: search, match: GET /search, algorithm: sliding, requests: 2, window: 2s }]'

test.concurrent.each(['embedded', 'embedded, two workers', 'redis'])(
  'a sliding window lets one more through when the oldest leaves it, counters %s',
  { retry: 2 },
  async (store) => {
    const backend = await startBackend()
    const gateway = await startGateway({
      UPSTREAM_URL: backend.url,
      CONFIG_FILE: writeConfigFile(limits),
      ...(store === 'embedded, two workers' && { WORKERS: '2' }),
      ...(store === 'redis' && { REDIS_URL: await freshRedis() }),
    })
    const ask = async (): Promise<unknown[]> => {
      const { status, headers } = await gateway.send('GET', '/search')
      expect(headers['ratelimit-policy']).toBe('"search";q=2;w=2')
      return [status, headers['ratelimit'], headers['retry-after']]
    }
    const startedAtMs = performance.now()
    const until = (atMs: number): Promise<void> => sleep(startedAtMs + atMs - performance.now())

    expect(await ask()).toEqual([200, '"search";r=1;t=2', undefined])
    await until(1300)
    expect(await ask()).toEqual([200, '"search";r=0;t=1', undefined])
    expect(await ask()).toEqual([429, '"search";r=0;t=1', '1'])
    await until(2150)
    // A fixed window would have begun anew, and let two through.
    expect(await ask()).toEqual([200, '"search";r=0;t=2', undefined])
    expect(await ask()).toEqual([429, '"search";r=0;t=2', '2'])
  },
)
