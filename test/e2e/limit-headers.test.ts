import { beforeAll, describe, expect, test } from 'vitest'
import { startBackend, type Backend } from '../support/http/backend.ts'
import { tlsSettings } from '../support/network/certificates.ts'
import { startHosted } from '../support/gateway/hosted-gateway.ts'
import { connectHttp2, sendHttp2 } from '../support/http/http2.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'

const limits = `
limits:
  - { name: hourly, match: 'GET /a', requests: 100, window: 1h }
  - { name: burst, match: 'GET /a', requests: 2, window: 1m }
  - { name: login, match: POST /login, requests: 5, window: 1h, countStatus: 401 }
`
const names = [
  'ratelimit-policy',
  'ratelimit',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
]

let backend: Backend

beforeAll(async () => {
  backend = await startBackend((request, response) => {
    request.resume().on('end', () => response.writeHead(request.url === '/login' ? 401 : 200).end())
  })
})

async function startWith(formats: string) {
  const file = writeConfigFile(`rateLimitHeaders: ${formats}\n${limits}`)
  const gateway = await startHosted({ UPSTREAM_URL: backend.url, CONFIG_FILE: file, ...tlsSettings() })
  const session = connectHttp2(gateway.port)
  const ask = async (method: string, path: string) => {
    const { status, headers } = await sendHttp2(session, { ':method': method, ':path': path })
    return { status, headers, told: names.filter((name) => name in headers) }
  }
  return { gateway, ask }
}

describe.each(['[ietf, x-ratelimit]', '[x-ratelimit]'])('rateLimitHeaders: %s', (formats) => {
  test('reports the rule with the least quota left, in local and backend responses, and after settling', async () => {
    const { ask } = await startWith(formats)
    const expected = formats.includes('ietf') ? names : names.slice(2)
    const first = await ask('GET', '/a')
    expect(first).toMatchObject({
      status: 200,
      headers: { 'x-ratelimit-limit': '2', 'x-ratelimit-remaining': '1', 'x-ratelimit-reset': '60' },
      told: expected,
    })
    await ask('GET', '/a')
    const refused = await ask('GET', '/a')
    expect(refused).toMatchObject({
      status: 429,
      headers: { 'x-ratelimit-limit': '2', 'x-ratelimit-remaining': '0' },
      told: expected,
    })
    expect(refused.headers['x-ratelimit-reset']).toBe(refused.headers['retry-after'])
    expect((await ask('POST', '/login')).headers).toMatchObject({ 'x-ratelimit-remaining': '4' })
    expect((await ask('GET', '/free')).told).toEqual([])
  })
})

test('rateLimitHeaders: [] leaves only Retry-After', async () => {
  const { ask } = await startWith('[]')
  for (let sent = 0; sent < 2; sent++) expect(await ask('GET', '/a')).toMatchObject({ status: 200, told: [] })
  const refused = await ask('GET', '/a')
  expect(refused).toMatchObject({ status: 429, told: [] })
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
  expect((await ask('POST', '/login')).told).toEqual([])
})

test('a response over HTTP/1.1 whose cost settles to nothing has its headers', async () => {
  const others = await startBackend((_request, response) => response.writeHead(204).end())
  const file = writeConfigFile(`rateLimitHeaders: [x-ratelimit]\n${limits}`)
  const gateway = await startHosted({ UPSTREAM_URL: others.url, CONFIG_FILE: file })
  const { headers } = await gateway.send('POST', '/login')
  // A successful request is refunded before the client gets the headers.
  expect(headers).toMatchObject({
    'x-ratelimit-limit': '5',
    'x-ratelimit-remaining': '5',
    'x-ratelimit-reset': '3600',
  })
  expect(headers).not.toHaveProperty('ratelimit')
})
