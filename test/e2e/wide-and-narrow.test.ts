import { expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { startHosted } from '../support/gateway/hosted-gateway.ts'
import { freshRedis } from '../support/redis/redis.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'

const limits = `limits:
  - { name: wide, match: GET /api/*, requests: 50, window: 1m }
  - { name: narrow, match: GET /api/search, requests: 10, window: 1m }
`

test.each(['embedded', 'redis'])(
  'a refusal by the narrow rule uses up nothing of the wide one, counters %s',
  async (store) => {
    const backend = await startBackend()
    const gateway = await startHosted({
      UPSTREAM_URL: backend.url,
      CONFIG_FILE: writeConfigFile(limits),
      ...(store === 'redis' && { REDIS_URL: await freshRedis() }),
    })
    const rush = async (path: string, count: number): Promise<number[]> => {
      const replies = await Promise.all(Array.from({ length: count }, () => gateway.send('GET', path)))
      return replies.map(({ status }) => status)
    }
    const search = await rush('/api/search', 60)
    expect(search.filter((status) => status === 200)).toHaveLength(10)
    expect(search.filter((status) => status === 429)).toHaveLength(50)

    const refused = await gateway.send('GET', '/api/search')
    expect(refused.headers['ratelimit-policy']).toContain('"narrow";q=10;w=60')
    expect(refused.headers['ratelimit']).toContain('"narrow";r=0')

    const rest = await rush('/api/other', 60)
    expect(rest.filter((status) => status === 200)).toHaveLength(40)
    expect(rest.filter((status) => status === 429)).toHaveLength(20)
    expect(backend.seen).toHaveLength(50)
  },
)
