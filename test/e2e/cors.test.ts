import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { startBackend, type Backend } from '../support/http/backend.ts'
import { tlsSettings } from '../support/network/certificates.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { connectHttp2, sendHttp2 } from '../support/http/http2.ts'
import { makeTemporaryDirectory, writeConfigFile } from '../support/run/temporary-directory.ts'

// test/apps/cross-origin.test.ts tests what a browser makes of these headers.

const app = 'https://app.example.com'
const exposed = 'Retry-After, RateLimit-Policy, RateLimit, X-Request-Id'
const common = 'requests: 1, window: 1h'
const limits = `
limits:
  - { name: every, match: '* /every', ${common} }
  - { name: named, match: 'GET,OPTIONS /named', ${common} }
  - { name: mixed, match: ['OPTIONS /mixed', '* /mixed/*'], ${common} }
  - { name: hosted, match: '* /hosted', hosts: localhost, ${common} }
`
const cookies = '[https://app.example.com, https://admin.example.com]'
const preflight = { origin: app, 'access-control-request-method': 'POST' }

let backend: Backend

beforeAll(async () => {
  backend = await startBackend((_request, response) => response.writeHead(200, { vary: 'Cookie' }).end('ok'))
})

function startWith(yaml: string, env: Record<string, string> = {}): Promise<HostedGateway> {
  return startHosted({ UPSTREAM_URL: backend.url, CONFIG_FILE: writeConfigFile(yaml + limits), ...env })
}

/** The CORS headers of a reply. */
function about(headers: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const names = Object.entries(headers).filter(
    ([name]) => name === 'vary' || name.startsWith('access-control'),
  )
  return Object.fromEntries(names)
}

const readable = {
  'access-control-allow-origin': app,
  'access-control-allow-credentials': 'true',
  'access-control-expose-headers': exposed,
  vary: 'Origin',
}

describe('local replies', () => {
  test('local replies can be read by scripts of the origins, over HTTP/1.1', async () => {
    const gateway = await startWith(`cors: { origins: ${cookies} }\n`)
    const ask = (origin?: string, path = '/every') =>
      gateway.send('GET', path, origin === undefined ? {} : { headers: { origin } })
    // The backend's own response stays unchanged.
    expect(await ask(app)).toMatchObject({ status: 200 })
    expect(about((await ask(app, '/free')).headers)).toEqual({ vary: 'Cookie' })
    const refused = await ask(app)
    expect(refused.status).toBe(429)
    expect(about(refused.headers)).toEqual(readable)
    expect(about((await ask('https://admin.example.com')).headers)).toMatchObject({
      'access-control-allow-origin': 'https://admin.example.com',
    })
    for (const other of [
      undefined,
      'https://evil.example.com',
      'null',
      '*',
      `${app}, ${app}`,
      `${app}.evil.com`,
    ])
      expect(about((await ask(other)).headers), other).toEqual({ vary: 'Origin' })
    const malformed = await ask(app, '/%zz')
    expect(malformed.status).toBe(400)
    expect(about(malformed.headers)).toEqual(readable)
  })

  test('local replies can be read by scripts of the origins over HTTP/2, including all limit headers', async () => {
    const page = join(makeTemporaryDirectory(), 'page.html')
    writeFileSync(page, '')
    const yaml = `cors: { origins: ${cookies} }\nrateLimitHeaders: [x-ratelimit]\nrefusal: { html: ${page}, headers: { X-Support: mail } }\n`
    const gateway = await startWith(yaml, tlsSettings())
    const session = connectHttp2(gateway.port)
    const ask = () => sendHttp2(session, { ':path': '/every', origin: app })
    await ask()
    const { status, headers } = await ask()
    expect(status).toBe(429)
    expect(about(headers)).toEqual({
      ...readable,
      'access-control-expose-headers':
        'Retry-After, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-Request-Id, x-support',
      vary: 'Accept, Origin',
    })
  })

  test("local replies can be read by scripts of any origin with '*', without cookies", async () => {
    const gateway = await startWith("cors: { origins: ['*'] }\n")
    for (const headers of [{ origin: app }, {}]) {
      await gateway.send('GET', '/every')
      expect(about((await gateway.send('GET', '/every', { headers })).headers)).toEqual({
        'access-control-allow-origin': '*',
        'access-control-expose-headers': exposed,
      })
    }
  })

  test('local replies cannot be read by any script without cors', async () => {
    const gateway = await startWith('')
    await gateway.send('GET', '/every')
    const { status, headers } = await gateway.send('GET', '/every', { headers: { origin: app } })
    expect(status).toBe(429)
    expect(about(headers)).toEqual({})
  })
})

describe('preflights', () => {
  test('preflights count only under rules that name OPTIONS', async () => {
    const gateway = await startWith(`cors: { origins: ${cookies} }\n`)
    const options = async (path: string, headers: Record<string, string> = preflight) =>
      (await gateway.send('OPTIONS', path, { headers })).status
    const statuses = async (path: string) => [await options(path), await options(path), await options(path)]
    expect(await statuses('/every')).toEqual([200, 200, 200])
    expect(await statuses('/named')).toEqual([200, 429, 429])
    expect(await statuses('/mixed/below')).toEqual([200, 200, 200])
    expect(await statuses('/mixed')).toEqual([200, 429, 429])
    // Preflights have not used up the quota of the request that they ask about.
    expect((await gateway.send('POST', '/every')).status).toBe(200)
    expect((await gateway.send('POST', '/every')).status).toBe(429)
  })

  test('preflights do not include other OPTIONS requests, nor any with a method override, a body or credentials', async () => {
    const gateway = await startWith(`cors: { origins: ${cookies} }\n`)
    const options = (path: string, headers: Record<string, string>, body?: string) =>
      gateway.send('OPTIONS', path, { headers, ...(body !== undefined && { body }) })
    await gateway.send('GET', '/every')
    expect((await options('/every', {})).status).toBe(429)
    expect((await options('/every', { origin: app })).status).toBe(429)
    expect((await options('/every', { 'access-control-request-method': 'POST' })).status).toBe(429)
    for (const name of [
      'x-http-method-override',
      'x-http-method',
      'x-method-override',
      'authorization',
      'cookie',
      'x-api-key',
      'apikey',
      'ocp-apim-subscription-key',
      'private-token',
      'x-auth-token',
      'x-client-secret',
      'x-session-id',
      'x-password',
    ])
      expect((await options('/every', { ...preflight, [name]: 'GET' })).status, name).toBe(429)
    for (const framing of [{ 'content-length': '1' }, { 'transfer-encoding': 'chunked' }])
      expect((await options('/every', { ...preflight, ...framing }, 'x')).status).toBe(429)
    // WordPress handles such a request as a GET.
    for (const query of [
      '?_method=GET',
      '?a=b&.method=GET',
      '?%5Fmethod=GET',
      '?_METHOD[]=GET',
      '?a;_method=GET',
    ])
      expect((await options(`/every${query}`, preflight)).status, query).toBe(429)
    for (const query of ['', '?method=GET', '?payment_method=a', '?a=_method=b'])
      expect((await options(`/every${query}`, preflight)).status, query).toBe(200)
    // Browsers and proxies send these with preflights.
    for (const name of [
      'user-agent',
      'sec-fetch-mode',
      'access-control-request-headers',
      'x-amzn-trace-id',
      'priority',
    ])
      expect((await options('/every', { ...preflight, [name]: 'x' })).status, name).toBe(200)
    const host = { host: 'localhost' }
    await options('/hosted', host)
    expect((await options('/hosted', host)).status).toBe(429)
    expect((await options('/hosted', { ...preflight, ...host })).status).toBe(200)
  })

  test('preflights count as any request without cors', async () => {
    const gateway = await startWith('')
    await gateway.send('OPTIONS', '/every', { headers: preflight })
    expect((await gateway.send('OPTIONS', '/every', { headers: preflight })).status).toBe(429)
  })
})
