import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { valuesOf } from '../support/http/lenient-requests.ts'
import { converse, freshAddress } from '../support/http/raw-client.ts'
import {
  connectRawHttp2,
  endHeaders,
  endStream,
  frame,
  frameTypes,
  requestFields,
} from '../support/http/raw-http2.ts'
import { startRecordingBackend, type RecordingBackend } from '../support/http/recording-backend.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'

// The attack: `Connection` names the header that a rule counts by, and the header has a made-up value in each request. A gateway that
// counts the value and then removes the header lets the backend identify the client by something else (Nathan Davison, "Abusing HTTP
// hop-by-hop request headers"). nginx and HAProxy forward named headers; Envoy answers 400 if X-Forwarded-* is named.

const sha256 = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'

const table = `
allowList: [{ header: { x-probe-token: sha256:${sha256} } }]
denyList: [{ header: { x-deny-token: sha256:${sha256} } }]
jwt: { secretFile: secret.txt }
limits:
  - { name: by-header, match: POST /a, key: header:x-api-key, requests: 1000, window: 1h }
  - { name: by-credentials, match: POST /a, key: { first: [header:authorization, ip] }, requests: 1000, window: 1h }
  - { name: by-cookie, match: POST /a, key: cookie:sid, requests: 1000, window: 1h }
  - { name: by-token, match: POST /a, key: ['jwt:sub', header:x-tenant], requests: 1000, window: 1h }
  - { name: by-unusual-name, match: POST /a, key: header:x_key, requests: 1000, window: 1h }
  - { name: by-proxy-header, match: POST /a, key: header:true-client-ip, requests: 1000, window: 1h }
  - name: overridden
    match: POST /a
    requests: 1000
    window: 1h
    overrides: [{ clients: [{ 'header:x-plan-token': sha256:${sha256} }], requests: 2000 }]
  - { name: by-body, match: POST /a, key: ip, requests: 100000, window: 1h, cost: { reserve: 'json:n', settle: 'json:n' } }
`

/** All headers that the gateway decides by, each with a value that a client may send. */
const decisive: Readonly<Record<string, string>> = {
  'x-api-key': 'made-up',
  authorization: 'Bearer made-up',
  cookie: 'sid=made-up',
  'x-tenant': 'made-up',
  x_key: 'made-up',
  'true-client-ip': '192.0.2.7',
  'x-probe-token': 'made-up',
  'x-deny-token': 'made-up',
  'x-plan-token': 'made-up',
  'content-type': 'application/json',
  'content-encoding': 'identity',
  origin: 'https://a.example',
  'access-control-request-method': 'POST',
}

/** Field lines that may make a recipient treat a header as hop-by-hop. */
const ways: readonly (readonly [string, (name: string) => readonly string[]])[] = [
  ['named', (name) => [`Connection: ${name}`]],
  ['in upper case', (name) => [`CONNECTION: ${name.toUpperCase()}`]],
  ['among others', (name) => [`Connection: keep-alive,\t${name} ,x-a`]],
  ['with close', (name) => [`Connection: close, ${name}`]],
  ['in a second line', (name) => ['Connection: keep-alive', `Connection: ,${name},`]],
  ['in a Keep-Alive', (name) => [`Connection: keep-alive, ${name}`, `Keep-Alive: timeout=5, ${name}`]],
  ['in Proxy-Connection', (name) => [`Proxy-Connection: ${name}`]],
  ['in TE', (name) => [`Connection: te, ${name}`, `TE: trailers, ${name}`]],
  ['in Trailer', (name) => [`Trailer: ${name}`, `Connection: trailer, ${name}`]],
  ['in Upgrade', (name) => [`Connection: upgrade, ${name}`, `Upgrade: ${name}`]],
]

let backend: RecordingBackend
let gateway: HostedGateway
let behindProxy: HostedGateway

beforeAll(async () => {
  backend = await startRecordingBackend()
  const directory = makeTemporaryDirectory()
  writeFileSync(join(directory, 'secret.txt'), 'a secret of at least 32 characters')
  const CONFIG_FILE = join(directory, 'sluice.yaml')
  writeFileSync(CONFIG_FILE, table.replace('secret.txt', join(directory, 'secret.txt')))
  const settings = { UPSTREAM_URL: backend.url, CONFIG_FILE }
  gateway = await startHosted(settings)
  const trusting = { TRUSTED_PROXIES: '127.0.0.0/8', CLIENT_ADDRESS_HEADER: 'CF-Connecting-IP' }
  behindProxy = await startHosted({ ...settings, ...trusting })
})

afterAll(() => backend.close())

describe.each(Object.entries(decisive))('%s, on which a decision rests,', (name, value) => {
  test.each(ways)(
    'a header that decides reaches the backend when it is %s as a header of the connection',
    async (_, linesFor) => {
      const from = freshAddress()
      const lines = [`${name}: ${value}`, ...linesFor(name)]
      const bytes = ['POST /a HTTP/1.1', 'Host: a', 'Content-Length: 2', ...lines, '', '{}'].join('\r\n')
      const { responses } = await converse(gateway.port, [bytes], { from, responses: 1 })
      expect(responses.map(({ status }) => status)).toEqual([200])
      expect(backend.requestsFrom(from).map((request) => valuesOf(request, name))).toEqual([[value]])
    },
  )
})

test.each([
  'x-forwarded-proto',
  'x-forwarded-prefix',
  'ssl-client-verify',
  'x-remote-user',
  'cf-connecting-ip',
])('%s of a trusted proxy reaches the backend even if its client names it in Connection', async (name) => {
  const named = new Set([name, 'cf-connecting-ip'])
  const lines = [...[...named].map((each) => `${each}: 192.0.2.9`), `Connection: ${[...named].join()}`]
  const bytes = [`POST /${name} HTTP/1.1`, 'Host: a', 'Content-Length: 0', ...lines, '', ''].join('\r\n')
  await converse(behindProxy.port, [bytes], { from: '127.0.0.1', responses: 1 })
  const request = backend.requests.find(({ target }) => target === `/${name}`)
  expect(request && valuesOf(request, name)).toContain('192.0.2.9')
  expect(request && valuesOf(request, 'x-real-ip')).toEqual(['192.0.2.9'])
})

test('a header that is named and decides nothing is removed', async () => {
  const from = freshAddress()
  const lines = ['X-A: b', 'Connection: x-a']
  const bytes = ['POST /a HTTP/1.1', 'Host: a', 'Content-Length: 0', ...lines, '', ''].join('\r\n')
  await converse(gateway.port, [bytes], { from, responses: 1 })
  expect(backend.requestsFrom(from).map((request) => valuesOf(request, 'x-a'))).toEqual([[]])
})

test('a trailer named by Connection is not forwarded', async () => {
  for (const [name, value] of Object.entries(decisive)) {
    const from = freshAddress()
    const lines = ['Transfer-Encoding: chunked', 'TE: trailers', `Trailer: ${name}`]
    const body = ['2', '{}', '0', `${name}: ${value}`, '', ''].join('\r\n')
    const bytes = ['POST /a HTTP/1.1', 'Host: a', ...lines, '', body].join('\r\n')
    await converse(gateway.port, [bytes], { from, responses: 1 })
    const [request] = backend.requestsFrom(from)
    expect(`${request?.head}${request?.rest}`.toLowerCase(), name).not.toContain(
      `${name}: ${value}`.toLowerCase(),
    )
  }
})

test.each(Object.entries(decisive))(
  'over HTTP/2 a Connection that names %s is a malformed request (RFC 9113 section 8.2.2)',
  async (name, value) => {
    const client = await connectRawHttp2(gateway.port, { cleartext: true })
    const path = `/over-http2/${name}`
    const fields = requestFields('GET', path, [name, value], ['connection', name])
    client.send(frame(frameTypes.headers, endHeaders | endStream, 1, fields))
    const reset = await client.waitFor(({ type, stream }) => type === frameTypes.rstStream && stream === 1)
    expect(reset.payload.readUInt32BE(0)).toBe(1)
    expect(backend.requests.some(({ target }) => target === path)).toBe(false)
    client.socket.destroy()
  },
)
