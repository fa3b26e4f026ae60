import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { tlsSettings } from '../support/network/certificates.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { connectHttp2, sendHttp2 } from '../support/http/http2.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'

// Each rule allows one request, so the second is refused.

const page = '<!doctype html><meta charset="utf-8"><title>Later</title><p>Zu viele Anfragen ü</p>'
const long = `${page}${'.'.repeat(20_000)}`
const browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'

const common = 'requests: 1, window: 1h'
const config = (directory: string): string => `
refusal:
  status: 503
  body: { code: 503, error: Slow down, "é": [1, null] }
  html: ${directory}/page.html
  headers: { X-Support: https://example.com/limits, Link: '</a>; rel=help' }
limits:
  - { name: plain, match: '* /plain', ${common} }
  - { name: text, match: '* /text', ${common}, refusal: { body: Later } }
  - { name: typed, match: '* /typed', ${common}, refusal: { body: '<a/>', contentType: application/xml } }
  - { name: filed, match: '* /filed', ${common}, refusal: { bodyFile: ${directory}/long.html } }
  - { name: empty, match: '* /empty', ${common}, refusal: { status: 403, headers: { X-Own: 'yes' } } }
`

type Reply = { status: number | undefined; headers: Record<string, unknown>; body: string }
type Ask = (method: string, path: string, accept?: string) => Promise<Reply>

const asks = new Map<string, Ask>()
let plain: HostedGateway

beforeAll(async () => {
  const backend = await startBackend()
  const file = writeConfigFile('')
  writeFileSync(file, config(dirname(file)))
  writeFileSync(join(dirname(file), 'page.html'), page)
  writeFileSync(join(dirname(file), 'long.html'), long)
  const env = { UPSTREAM_URL: backend.url, CONFIG_FILE: file }
  plain = await startHosted({ ...env, WORKERS: '2' })
  const overTls = await startHosted({ ...env, ...tlsSettings() })
  const session = connectHttp2(overTls.port)
  asks.set('HTTP/1.1', (method, path, accept) =>
    plain.send(method, path, accept === undefined ? {} : { headers: { accept } }),
  )
  asks.set('HTTP/2', (method, path, accept) =>
    sendHttp2(session, { ':method': method, ':path': path, ...(accept !== undefined && { accept }) }),
  )
})

describe.each(['HTTP/1.1', 'HTTP/2'])('over %s', (version) => {
  async function refused(path: string, accept?: string, method = 'GET'): Promise<Reply> {
    const ask = asks.get(version)
    if (!ask) throw new Error('not started')
    await ask('GET', path)
    return ask(method, path, accept)
  }
  const utf8 = ({ body }: Reply): string => Buffer.from(body, 'latin1').toString()

  test('a script gets JSON, with the headers of each refusal', async () => {
    const reply = await refused('/plain', '*/*')
    expect(reply.status).toBe(503)
    expect(utf8(reply)).toBe('{"code":503,"error":"Slow down","é":[1,null]}')
    expect(reply.headers).toMatchObject({
      'content-type': 'application/json',
      'content-length': String(reply.body.length),
      'retry-after': expect.stringMatching(/^3[56]\d\d$/) as string,
      'cache-control': 'no-store',
      'ratelimit-policy': '"plain";q=1;w=3600',
      ratelimit: expect.stringMatching(/^"plain";r=0;t=3[56]\d\d$/) as string,
      'x-support': 'https://example.com/limits',
      link: '</a>; rel=help',
      vary: 'Accept',
    })
    expect(reply.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/)
  })

  test('a browser gets the page', async () => {
    const reply = await refused('/plain', browser)
    expect(reply).toMatchObject({
      status: 503,
      headers: { 'content-type': 'text/html; charset=utf-8', vary: 'Accept' },
    })
    expect(utf8(reply)).toBe(page)
  })

  test('a rule with a refusal of its own ignores the common one', async () => {
    const reply = await refused('/text', browser)
    expect(reply).toMatchObject({
      status: 429,
      body: 'Later',
      headers: { 'content-type': 'text/plain; charset=utf-8' },
    })
    for (const name of ['x-support', 'link', 'vary']) expect(reply.headers).not.toHaveProperty(name)
  })

  test('a media type, a file by its name, and the usual body with another status', async () => {
    expect(await refused('/typed')).toMatchObject({
      status: 429,
      body: '<a/>',
      headers: { 'content-type': 'application/xml' },
    })
    const filed = await refused('/filed', 'application/json')
    expect(filed.headers['content-type']).toBe('text/html; charset=utf-8')
    expect(utf8(filed)).toBe(long)
    expect(await refused('/empty')).toMatchObject({
      status: 403,
      body: '{"code":403,"error":"Too many requests, Please try after a while!"}',
      headers: { 'content-type': 'application/json', 'x-own': 'yes' },
    })
  })

  test('HEAD has the headers alone', async () => {
    const reply = await refused('/plain', browser, 'HEAD')
    const length = String(Buffer.byteLength(page))
    expect(reply).toMatchObject({ status: 503, body: '', headers: { 'content-length': length } })
  })

  test('other local replies are unchanged', async () => {
    const reply = await asks.get(version)?.('GET', '/%zz', browser)
    expect(reply).toMatchObject({ status: 400, body: '{"code":400,"error":"Bad request"}' })
    expect(reply?.headers).not.toHaveProperty('x-support')
  })
})
