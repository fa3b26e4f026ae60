import { writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { startHosted } from '../support/gateway/hosted-gateway.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { freshRedis } from '../support/redis/redis.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'

/*
 * Bans and limits that operators set stay in the lists when their rule is removed from the table, and apply again when the rule is back.
 * Meanwhile an operator can remove them by the names in the lists.
 */

const other = '{ name: other, match: GET /other, requests: 5, window: 1h }'
const rules = `
  - ${other}
  - { name: ip, match: GET /ip, requests: 5, window: 1h }
  - { name: net, match: GET /net, key: ip/24/48, requests: 5, window: 1h }
  - { name: keyed, match: GET /keyed, key: 'header:x-key', requests: 5, window: 1h }
  - { name: global, match: GET /all, key: global, requests: 5, window: 1h }
`
const ip = { ip: '192.0.2.7' }
const secret = { 'header:x-key': 'a' }

type Listed = { readonly client: object; readonly policy: string | null }

test.each(['memory', 'Redis'])(
  'bans and limits under a rule that was removed from the table can be removed: %s',
  async (store) => {
    const backend = await startBackend()
    const file = writeConfigFile(`limits:${rules}`)
    const gateway = await startHosted({
      UPSTREAM_URL: backend.url,
      CONFIG_FILE: file,
      ...(store === 'Redis' && { REDIS_URL: await freshRedis() }),
    })
    const ask = async (path: string, body?: object): Promise<{ status: number; body: unknown }> =>
      askOperator(gateway, body ? 'POST' : 'GET', `/api/${path}`, body)
    const listed = async (kind: 'bans' | 'overrides'): Promise<readonly Listed[]> =>
      ((await ask(kind)).body as Record<typeof kind, readonly Listed[]>)[kind]

    for (const [policy, client] of [
      ['ip', ip],
      ['net', ip],
      ['keyed', secret],
      ['global', { global: true }],
      [undefined, secret],
    ] as const) {
      const about = { client, for: '1h', ...(policy !== undefined && { policy }) }
      expect((await ask('clients/ban', about)).status).toBe(200)
      if (policy !== undefined)
        expect((await ask('clients/override', { ...about, requests: 9 })).status).toBe(200)
    }
    writeFileSync(file, `limits:\n  - ${other}\n`)
    expect((await ask('reload', {})).status).toBe(200)

    expect(await listed('overrides')).toHaveLength(4)
    for (const { client, policy } of await listed('overrides'))
      expect(await ask('clients/override/remove', { client, policy })).toMatchObject({
        status: 200,
        body: { removed: true },
      })
    expect(await listed('overrides')).toEqual([])

    const bans = await listed('bans')
    expect(bans).toHaveLength(5)
    // An unban without a rule lifts all bans of the client, so these come last.
    for (const { client, policy } of bans.toSorted(
      (a, b) => Number(a.policy === null) - Number(b.policy === null),
    ))
      expect(await ask('clients/unban', policy === null ? { client } : { client, policy })).toMatchObject({
        status: 200,
      })
    expect(await listed('bans')).toEqual([])

    expect((await ask('clients/unban', { client: ip, policy: 'ip' })).status).toBe(404)
    expect((await ask('clients/override/remove', { client: ip, policy: 'ip' })).status).toBe(404)
  },
)

test('to lift all bans of a client includes those under rules that were removed', async () => {
  const backend = await startBackend()
  const file = writeConfigFile(`limits:${rules}`)
  const gateway = await startHosted({ UPSTREAM_URL: backend.url, CONFIG_FILE: file })
  const ask = (path: string, body: object) => askOperator(gateway, 'POST', `/api/${path}`, body)
  await ask('clients/ban', { client: ip, policy: 'ip', for: '1h' })
  writeFileSync(file, `limits:\n  - ${other}\n`)
  await ask('reload', {})
  expect(await ask('clients/unban', { client: '192.0.2.7' })).toMatchObject({
    status: 200,
    body: { unbanned: [{ client: ip, policy: 'ip' }] },
  })
})
