import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { writeMmdb } from '../support/geo/mmdb.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { startBackend } from '../support/http/backend.ts'
import { parseExposition, type Exposition } from '../support/metrics/prometheus.ts'
import { freshRedis } from '../support/redis/redis.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

const table = `
geoip: { country: country.mmdb, asn: asn.mmdb }
limits:
  - { name: germany, match: GET /germany, when: { country: DE }, requests: 1, window: 1h }
  - { name: abroad, match: GET /abroad, unless: { country: [DE, FR] }, requests: 1, window: 1h }
  - { name: hosters, match: GET /hosters, when: { asn: [AS64496, 64497] }, requests: 1, window: 1h }
  - { name: by-system, match: GET /by-system, key: asn, requests: 1, window: 1h }
  - { name: by-country, match: GET /by-country, key: [country, ip/24/48], requests: 1, window: 1h }
`

const countries = (first: string): Buffer =>
  writeMmdb({
    '127.0.1.0/24': { country: { iso_code: first } },
    '127.0.2.0/24': { country: { iso_code: 'FR' } },
  })

describe.each<[string, () => Promise<Record<string, string>>]>([
  ['in memory', () => Promise.resolve({})],
  ['in Redis', async () => ({ REDIS_URL: await freshRedis() })],
  ['of two workers', () => Promise.resolve({ WORKERS: '2' })],
])('rules by country and autonomous system, with counters %s', (_, store) => {
  let gateway: HostedGateway
  let folder: string

  beforeAll(async () => {
    const { url } = await startBackend()
    folder = makeTemporaryDirectory()
    writeFileSync(join(folder, 'sluice.yaml'), table)
    writeFileSync(join(folder, 'country.mmdb'), countries('DE'))
    writeFileSync(
      join(folder, 'asn.mmdb'),
      writeMmdb({
        '127.0.1.0/25': { autonomous_system_number: 64496 },
        '127.0.2.0/24': { autonomous_system_number: 64498 },
        '::1/128': { autonomous_system_number: 64497 },
      }),
    )
    gateway = await startHosted({
      UPSTREAM_URL: url,
      CONFIG_FILE: join(folder, 'sluice.yaml'),
      ...(await store()),
    })
  })

  const statusOf = async (path: string, from: string): Promise<number> =>
    (await gateway.send('GET', path, { from })).status
  const twice = async (path: string, from: string): Promise<number[]> => [
    await statusOf(path, from),
    await statusOf(path, from),
  ]
  const counted = [200, 429]
  const free = [200, 200]

  test('when and unless with countries; an unknown address is in none', async () => {
    expect(await twice('/germany', '127.0.1.1')).toEqual(counted)
    expect(await twice('/germany', '127.0.2.1')).toEqual(free)
    expect(await twice('/germany', '127.0.3.1')).toEqual(free)
    expect(await twice('/abroad', '127.0.1.1')).toEqual(free)
    expect(await twice('/abroad', '127.0.2.1')).toEqual(free)
    expect(await twice('/abroad', '127.0.3.1')).toEqual(counted)
  })

  test('a rule with `when: { asn }` counts only clients of those autonomous systems', async () => {
    expect(await twice('/hosters', '127.0.1.1')).toEqual(counted)
    expect(await twice('/hosters', '127.0.1.129')).toEqual(free)
    expect(await twice('/hosters', '127.0.2.1')).toEqual(free)
  })

  test('`key: asn` counts the addresses of a system together, and all unknown addresses together', async () => {
    expect(await statusOf('/by-system', '127.0.1.1')).toBe(200)
    expect(await statusOf('/by-system', '127.0.1.2')).toBe(429)
    expect(await statusOf('/by-system', '127.0.2.1')).toBe(200)
    expect(await statusOf('/by-system', '127.0.3.1')).toBe(200)
    expect(await statusOf('/by-system', '127.0.1.200')).toBe(429)
    expect(await statusOf('/by-country', '127.0.2.1')).toBe(200)
    expect(await statusOf('/by-country', '127.0.2.2')).toBe(429)
    const inspect = async (policy: string, client: object): Promise<unknown> =>
      (await askOperator(gateway, 'POST', '/api/clients/inspect', { policy, client })).body
    for (const asn of ['AS64496', 'as64496', 'unknown'])
      expect(await inspect('by-system', { asn })).toMatchObject({ states: [{ used: 1, exceeded: true }] })
    expect(await inspect('by-country', { country: 'fr', ip: '127.0.2.9' })).toMatchObject({
      states: [{ used: 1 }],
    })
    const { body } = await askOperator(gateway, 'POST', '/api/explain', {
      method: 'GET',
      target: '/by-system',
      ip: '127.0.1.7',
    })
    expect(body).toMatchObject({
      rules: expect.arrayContaining([
        expect.objectContaining({ name: 'by-system', key: [{ part: 'asn', values: ['AS64496'] }] }),
      ]) as unknown,
    })
  })

  test('a database is read again when its file is replaced, and a broken one is not used', async () => {
    const file = join(folder, 'country.mmdb')
    const replace = (bytes: Buffer): void => {
      writeFileSync(`${file}.new`, bytes)
      renameSync(`${file}.new`, file)
    }
    const countryOf = async (ip: string): Promise<unknown> => {
      const { body } = await askOperator(gateway, 'POST', '/api/explain', {
        method: 'GET',
        target: '/by-country',
        ip,
      })
      const { rules } = body as { rules: { name: string; key: { part: string; values: string[] }[] }[] }
      const rule = rules.find(({ name }) => name === 'by-country')
      return rule?.key.find(({ part }) => part === 'country')?.values
    }
    const metrics = async (): Promise<Exposition> =>
      parseExposition(await (await fetch(`http://127.0.0.1:${gateway.adminPort}/metrics`)).text())
    const isUsable = async (database: string): Promise<number> =>
      (await metrics()).value('sluice_geoip_last_reload_successful', { database })
    expect(await countryOf('127.0.1.1')).toEqual(['DE'])
    expect([await isUsable('country'), await isUsable('asn')]).toEqual([1, 1])
    replace(countries('AT'))
    await eventually('the new database is used', async () =>
      expect(await countryOf('127.0.1.1')).toEqual(['AT']),
    )
    replace(countries('CH').subarray(0, 40))
    await eventually('the broken database is refused', () =>
      expect(gateway.output()).toContain('cannot use the changed geoip database'),
    )
    expect(await countryOf('127.0.1.1')).toEqual(['AT'])
    await eventually('the metrics say so', async () => expect(await isUsable('country')).toBe(0))
    expect(await isUsable('asn')).toBe(1)
    replace(countries('CH'))
    await eventually('the next database is used', async () =>
      expect(await countryOf('127.0.1.1')).toEqual(['CH']),
    )
    await eventually('the metrics say so', async () => expect(await isUsable('country')).toBe(1))
  })
})
