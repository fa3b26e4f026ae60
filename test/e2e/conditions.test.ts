import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SignJWT } from 'jose'
import { beforeAll, describe, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import type { SendOptions } from '../support/gateway/gateway.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { freshRedis } from '../support/redis/redis.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'

const secret = 'x'.repeat(32)
const table = readFileSync(join(import.meta.dirname, 'conditions.yaml'), 'utf8')

const tokenOf = (plan: string, expires = '10m'): Promise<string> =>
  new SignJWT({ plan })
    .setProtectedHeader({ alg: 'HS256' })
    .setExpirationTime(expires)
    .sign(Buffer.from(secret))

let lastClient = 1
const newAddress = (): string => `127.0.1.${++lastClient}`

describe.each<[string, () => Promise<Record<string, string>>]>([
  ['in memory', () => Promise.resolve({})],
  ['in Redis', async () => ({ REDIS_URL: await freshRedis() })],
  ['of two workers', () => Promise.resolve({ WORKERS: '2' })],
])('when and unless of a rule, with counters %s', (_, store) => {
  let gateway: HostedGateway
  let file: string

  beforeAll(async () => {
    const { url } = await startBackend((request, response) => response.end(JSON.stringify(request.headers)))
    const folder = makeTemporaryDirectory()
    file = join(folder, 'sluice.yaml')
    writeFileSync(file, table)
    writeFileSync(join(folder, 'secret.txt'), secret)
    writeFileSync(join(folder, 'internal.txt'), '127.0.0.78 # of a list\n')
    gateway = await startHosted({ UPSTREAM_URL: url, CONFIG_FILE: file, ...(await store()) })
  })

  /** The statuses of two requests: the second is refused if the rule counts them. */
  const twice = async (path: string, options: SendOptions = {}): Promise<number[]> => {
    const from = options.from ?? newAddress()
    const statuses = []
    for (let i = 0; i < 2; i++) statuses.push((await gateway.send('GET', path, { ...options, from })).status)
    return statuses
  }
  const counted = [200, 429]
  const free = [200, 200]

  test('header: a rule for clients that send none', async () => {
    expect(await twice('/api')).toEqual(counted)
    expect(await twice('/api', { headers: { 'x-api-key': '' } })).toEqual(counted)
    expect(await twice('/api', { headers: { 'x-api-key': 'a' } })).toEqual(free)
    for (const from of ['127.0.0.77', '127.0.0.78']) expect(await twice('/api', { from })).toEqual(free)
  })

  test('header: another spelling of the name is not the header, and the backend does not get it', async () => {
    for (const name of ['x_api_key', 'X.Api.Key', 'x-api_key'])
      expect(await twice('/api', { headers: { [name]: 'a' } }), name).toEqual(counted)
    const { body } = await gateway.send('GET', '/other', { headers: { x_api_key: 'a', 'X-Api-Key': 'b' } })
    expect(JSON.parse(body)).toMatchObject({ 'x-api-key': 'b' })
    expect(body).not.toContain('x_api_key')
  })

  test('cookie and query: all of when must hold', async () => {
    expect(await twice('/pages')).toEqual(counted)
    expect(await twice('/pages', { headers: { cookie: 'sid=1' } })).toEqual(free)
    expect(await twice('/pages?preview=1')).toEqual(free)
    for (const cookie of ['SID=1', 'sid=', 'a="; sid=1'])
      expect(await twice('/pages', { headers: { cookie } }), cookie).toEqual(counted)
    expect(await twice('/pages?preview')).toEqual(counted)
  })

  test('a userAgent condition holds for any text of its list', async () => {
    expect(await twice('/crawled', { headers: { 'user-agent': 'curl/8' } })).toEqual(free)
    expect(await twice('/crawled', { headers: { 'user-agent': 'Mozilla/5.0 (x, y) GoogleBot/2' } })).toEqual(
      counted,
    )
  })

  test('jwt: a claim of a verified token that has not expired', async () => {
    const withToken = async (authorization: string): Promise<number[]> =>
      twice('/plan', { headers: { authorization } })
    expect(await twice('/plan')).toEqual(counted)
    expect(await withToken(`Bearer ${await tokenOf('pro')}`)).toEqual(free)
    expect(await withToken(`Bearer ${await tokenOf('free')}`)).toEqual(counted)
    expect(await withToken(`Bearer ${await tokenOf('pro', '-1m')}`)).toEqual(counted)
    expect(await withToken(`Bearer ${await tokenOf('pro')}x, Bearer ${await tokenOf('free')}`)).toEqual(
      counted,
    )
    const [head = '', payload = ''] = (await tokenOf('pro')).split('.')
    expect(await withToken(`Bearer ${head}.${payload}.c2lnbmF0dXJl`)).toEqual(counted)
  })

  test('a host condition holds for all names below a domain', async () => {
    expect(await twice('/host', { headers: { host: 'a.Tenant.example:80' } })).toEqual(counted)
    expect(await twice('/host', { headers: { host: 'tenant.example' } })).toEqual(free)
  })

  test('operators see the conditions, and which of them a request does not meet', async () => {
    const { body } = await askOperator(gateway, 'GET', '/api/limits')
    const { limits } = body as { limits: { name: string }[] }
    expect(limits.find(({ name }) => name === 'anonymous')).toMatchObject({
      when: [{ header: { 'x-api-key': 'absent' } }],
      unless: [{ ip: ['127.0.0.77', { file: 'internal.txt' }] }],
    })
    expect(limits.find(({ name }) => name === 'free')).toMatchObject({
      unless: [{ jwt: { plan: ['pro', 'enterprise'] } }],
    })
    const explain = async (target: string, headers: object): Promise<unknown> =>
      (await askOperator(gateway, 'POST', '/api/explain', { method: 'GET', target, headers })).body
    expect(await explain('/api', { 'x-api-key': 'a' })).toMatchObject({
      outcome: 'forwarded',
      rules: expect.arrayContaining([
        expect.objectContaining({
          name: 'anonymous',
          counts: false,
          near: true,
          why: 'when is not met: header: { x-api-key: absent }',
        }),
      ]) as unknown,
    })
    expect(await explain('/plan', { authorization: `Bearer ${await tokenOf('pro')}` })).toMatchObject({
      rules: expect.arrayContaining([
        expect.objectContaining({ name: 'free', why: 'unless is met: jwt: { plan: [pro, enterprise] }' }),
      ]) as unknown,
    })
    expect(await explain('/api', {})).toMatchObject({ outcome: 'limited' })
  })

  test('a reload changes conditions and keeps the counts', async () => {
    const from = newAddress()
    expect((await gateway.send('GET', '/api', { from })).status).toBe(200)
    writeFileSync(file, table.replace('x-api-key: absent', 'x-other: absent'))
    await askOperator(gateway, 'POST', '/api/reload', {})
    const headers = { 'x-api-key': 'a' }
    expect((await gateway.send('GET', '/api', { from, headers })).status).toBe(429)
    expect((await gateway.send('GET', '/api', { from, headers: { 'x-other': 'a' } })).status).toBe(200)
  })
})
