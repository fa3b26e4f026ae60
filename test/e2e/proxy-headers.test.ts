import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { tlsSettings } from '../support/network/certificates.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { connectHttp2, sendHttp2 } from '../support/http/http2.ts'
import { valuesOf } from '../support/http/lenient-requests.ts'
import { converse, freshAddress } from '../support/http/raw-client.ts'
import { startRecordingBackend, type RecordingBackend } from '../support/http/recording-backend.ts'

// gunicorn removes the prefix in `SCRIPT_NAME: /x` from the path before routing: `POST /x/login` reaches Flask's /login, but was not
// counted as that.

const stolen = ['SCRIPT_NAME', 'X-Script-Name', 'X-Vhm-Root', 'X-Remote-User', 'CF-Connecting-IP', 'Proxy']
const own = 'X-API-Key'

let backend: RecordingBackend
let gateway: HostedGateway
let behindProxy: HostedGateway
let keeping: HostedGateway
let secure: HostedGateway

beforeAll(async () => {
  backend = await startRecordingBackend()
  const settings = { UPSTREAM_URL: backend.url }
  gateway = await startHosted(settings)
  behindProxy = await startHosted({ ...settings, TRUSTED_PROXIES: '127.0.0.0/8' })
  keeping = await startHosted({ ...settings, KEEP_UNUSUAL_HEADERS: '1' })
  secure = await startHosted({ ...settings, ...tlsSettings() })
})

afterAll(() => backend.close())

/** Sends each header with the value `sent`, and returns the ones that the backend has seen. */
async function seenOf(port: number, names: readonly string[], ...more: string[]): Promise<string[]> {
  const from = freshAddress()
  const lines = [...names.map((name) => `${name}: sent`), ...more]
  const bytes = [`GET /x/login HTTP/1.1`, 'Host: a', ...lines, '', ''].join('\r\n')
  const { responses } = await converse(port, [bytes], { from, responses: 1 })
  expect(responses).toHaveLength(1)
  const request = backend.requestsFrom(from).at(-1)
  return names.filter((name) => request && valuesOf(request, name.toLowerCase()).includes('sent'))
}

describe('headers that only a proxy should set', () => {
  test('headers that only a proxy should set do not reach the backend from a client', async () => {
    expect(await seenOf(gateway.port, [...stolen, own])).toEqual([own])
  })

  test('headers that only a proxy should set do not reach the backend with a handshake', async () => {
    const handshake = [
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    ]
    expect(await seenOf(gateway.port, [...stolen, own], ...handshake)).toEqual([own])
  })

  test('headers that only a proxy should set do not reach the backend over HTTP/2', async () => {
    const path = '/over-http2'
    const headers = Object.fromEntries([...stolen, own].map((name) => [name.toLowerCase(), 'sent']))
    const { status } = await sendHttp2(connectHttp2(secure.port), { ':path': path, ...headers })
    expect(status).toBe(200)
    const request = backend.requests.find(({ target }) => target === path)
    expect(request?.fields.filter(([, value]) => value === 'sent').map(([name]) => name)).toEqual([
      own.toLowerCase(),
    ])
  })

  test('reach the backend from a trusted proxy, except those that rules would not see', async () => {
    const seen = await seenOf(behindProxy.port, [...stolen, own], 'X-Forwarded-For: 9.9.9.9')
    // Recorded under the address that the proxy sends.
    const [request] = backend.requestsFrom('9.9.9.9')
    expect(seen).toEqual([])
    expect(request?.fields.filter(([, value]) => value === 'sent').map(([name]) => name)).toEqual([
      'x-script-name',
      'x-vhm-root',
      'x-remote-user',
      'cf-connecting-ip',
      'x-api-key',
    ])
  })
})

test('KEEP_UNUSUAL_HEADERS keeps headers that cannot be mistaken for another', async () => {
  const names = ['api_key', 'x.y', 'SCRIPT_NAME', 'X_Remote_User', 'X_Forwarded_For', 'Transfer_Encoding']
  expect(await seenOf(gateway.port, names)).toEqual([])
  expect(await seenOf(keeping.port, names)).toEqual(['api_key', 'x.y'])
})
