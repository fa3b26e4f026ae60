import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { startHosted } from '../support/gateway/hosted-gateway.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { freshRedis } from '../support/redis/redis.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

const from = '127.0.0.8'
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

const table = `
limits:
  - name: api
    match: '* /api/*'
    key: header:x-api-key
    requests: 2
    window: 10m
    overrides:
      - clients: [{ 'header:x-api-key': 'sha256:${sha256('gold')}' }, { 'header:x-api-key': 'sha256:${sha256('silver')}' }]
        requests: 6
        label: Precious
      - clients: { 'header:x-api-key': 'sha256:${sha256('iron')}' }
        requests: 1
  - name: all
    match: '* /pages/*'
    requests: 1
    window: 10m
    algorithm: sliding
    overrides:
      - { clients: [{ ip: 127.0.0.8 }], requests: 4 }
  - name: bucket
    match: '* /search/*'
    algorithm: token-bucket
    requests: 6
    window: 10h
    burst: 1
    overrides:
      - { clients: [{ ip: 127.0.0.8 }], requests: 8 }
`

test.each(['memory', 'workers', 'Redis'] as const)(
  'a rule says another number for some clients: %s',
  async (place) => {
    const backend = await startBackend()
    const gateway = await startHosted({
      UPSTREAM_URL: backend.url,
      CONFIG_FILE: writeConfigFile(table),
      ...(place === 'workers' && { WORKERS: '2' }),
      ...(place === 'Redis' && { REDIS_URL: await freshRedis() }),
    })
    const passed = async (path: string, given: object): Promise<number> => {
      const answers = await Promise.all(Array.from({ length: 12 }, () => gateway.send('GET', path, given)))
      return answers.filter(({ status }) => status === 200).length
    }
    const withKey = (key: string) => ({ from, headers: { 'x-api-key': key } })
    expect(await passed('/api/a', withKey('copper'))).toBe(2)
    expect(await passed('/api/a', withKey('gold'))).toBe(6)
    expect(await passed('/api/a', withKey('silver'))).toBe(6)
    expect(await passed('/api/a', withKey('iron'))).toBe(1)
    expect(await passed('/pages/a', { from })).toBe(4)
    expect(await passed('/pages/a', { from: '127.0.0.9' })).toBe(1)
    // The burst of an override equals its requests, and decides how long an empty bucket takes to fill, no matter what the rule's burst is.
    expect(await passed('/search/a', { from })).toBe(8)
    expect((await gateway.send('GET', '/search/a', { from })).headers['ratelimit-policy']).toBe(
      '"bucket";q=8;w=36000',
    )
    const { headers } = await gateway.send('GET', '/api/a', withKey('gold'))
    expect(headers['ratelimit-policy']).toBe('"api";q=6;w=600')

    const stateOf = async (question: object): Promise<unknown> => {
      const { body } = await askOperator(gateway, 'POST', '/api/clients/inspect', question)
      return body
    }
    const ofKey = (key: string) => ({ client: { 'Header:X-API-Key': key } })
    expect(await stateOf(ofKey('gold'))).toMatchObject({
      states: [{ policy: 'api', limit: 6, used: 6, remaining: 0, label: 'Precious' }],
    })
    expect(await stateOf({ policy: 'api', client: 'iron' })).toMatchObject({
      states: [{ limit: 1, used: 1 }],
    })
    expect(await stateOf(ofKey('copper'))).toMatchObject({ states: [{ limit: 2, used: 2 }] })
    expect(await stateOf({ policy: 'all', client: from })).toMatchObject({ states: [{ limit: 4, used: 4 }] })
    expect(await stateOf({ policy: 'all', client: '127.0.0.9' })).toMatchObject({
      states: [{ limit: 1, used: 1 }],
    })
    expect(await stateOf({ client: { ip: from } })).toMatchObject({
      states: [
        { policy: 'all', limit: 4 },
        { policy: 'bucket', limit: 8 },
      ],
    })
    // A reset of the client resets the counter that the rule and the override share.
    await askOperator(gateway, 'POST', '/api/clients/reset', ofKey('gold'))
    await eventually('the reset is known to all processes', async () =>
      expect(await stateOf(ofKey('gold'))).toMatchObject({ states: [{ limit: 6, used: 0 }] }),
    )
  },
)
