import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { tlsSettings } from '../support/network/certificates.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { connectHttp2, sendHttp2 } from '../support/http/http2.ts'
import { valuesOf, type RecordedRequest } from '../support/http/lenient-requests.ts'
import { converse } from '../support/http/raw-client.ts'
import { startRecordingBackend, type RecordingBackend } from '../support/http/recording-backend.ts'

// The attack: a client sends the header that only its CDN should send, or makes the CDN's header ambiguous. So it gets a fresh quota with
// each request, or shows the backend another address than the one that was counted.

const cdn = '127.0.0.2'
const stranger = '127.0.0.3'

let backend: RecordingBackend
let gateway: HostedGateway
let behindNginx: HostedGateway
let secure: HostedGateway

beforeAll(async () => {
  backend = await startRecordingBackend()
  const settings = {
    UPSTREAM_URL: backend.url,
    CONFIG_FILE: 'test/wire/one-each.yaml',
    CLIENT_ADDRESS_HEADER: 'CF-Connecting-IP',
    TRUSTED_PROXIES: cdn,
  }
  gateway = await startHosted(settings)
  behindNginx = await startHosted({ ...settings, CLIENT_ADDRESS_HEADER: 'X-Real-IP' })
  secure = await startHosted({ ...settings, ...tlsSettings(), TRUSTED_PROXIES: '127.0.0.1' })
})

afterAll(() => backend.close())

let lastTarget = 0

/** The request as the backend receives it when these lines are sent from an address. */
async function seenOf(port: number, from: string, ...lines: string[]): Promise<RecordedRequest | undefined> {
  lastTarget += 1
  const target = `/seen/${lastTarget}`
  const bytes = [`GET ${target} HTTP/1.1`, 'Host: a', ...lines, '', ''].join('\r\n')
  const { responses } = await converse(port, [bytes], { from, responses: 1 })
  expect(responses[0]?.status).toBe(200)
  return backend.requests.find((request) => request.target === target)
}

async function statusOf(from: string, ...lines: string[]): Promise<number | undefined> {
  const bytes = ['POST /login HTTP/1.1', 'Host: a', 'Content-Length: 0', ...lines, '', ''].join('\r\n')
  const { responses } = await converse(gateway.port, [bytes], { from, responses: 1 })
  return responses[0]?.status
}

describe('the header of a CDN', () => {
  test('requests count by the client that the header of a CDN names', async () => {
    expect(await statusOf(cdn, 'CF-Connecting-IP: 203.0.113.1')).toBe(200)
    expect(await statusOf(cdn, 'cf-connecting-ip: 203.0.113.1')).toBe(429)
    expect(await statusOf(cdn, 'CF-Connecting-IP: 203.0.113.2', 'X-Forwarded-For: 203.0.113.1')).toBe(200)
  })

  test('the header of a CDN is the only header that names the client: X-Forwarded-For is ignored', async () => {
    expect(await statusOf(cdn, 'X-Forwarded-For: 203.0.113.3')).toBe(200)
    expect(await statusOf(cdn, 'X-Forwarded-For: 203.0.113.4')).toBe(429)
  })

  test.each([
    ['malformed', ['CF-Connecting-IP: 203.0.113']],
    ['empty', ['CF-Connecting-IP:']],
    ['a list', ['CF-Connecting-IP: 203.0.113.5, 203.0.113.6']],
    ['in two lines', ['CF-Connecting-IP: 203.0.113.5', 'CF-Connecting-IP: 203.0.113.6']],
    ['in two lines, one empty', ['CF-Connecting-IP: 203.0.113.5', 'CF-Connecting-IP:']],
    ['in two lines that are alike', ['CF-Connecting-IP: 203.0.113.5', 'CF-Connecting-IP: 203.0.113.5']],
  ])('%s: the client is the proxy itself, and the backend does not see it', async (_case, lines) => {
    const request = await seenOf(gateway.port, cdn, ...lines)
    expect(request && valuesOf(request, 'x-real-ip')).toEqual([cdn])
    expect(request && valuesOf(request, 'cf-connecting-ip')).toEqual([])
  })

  test('the header reaches the backend unchanged if it was believed', async () => {
    const request = await seenOf(
      gateway.port,
      cdn,
      'CF-Connecting-IP: 203.0.113.7',
      'Connection: CF-Connecting-IP',
    )
    expect(request && valuesOf(request, 'cf-connecting-ip')).toEqual(['203.0.113.7'])
    expect(request && valuesOf(request, 'x-real-ip')).toEqual(['203.0.113.7'])
    expect(request && valuesOf(request, 'x-forwarded-for')).toEqual([cdn])
  })

  test('the header of a CDN is dropped from other clients, which count by their own address', async () => {
    const request = await seenOf(
      gateway.port,
      stranger,
      'CF-Connecting-IP: 203.0.113.8',
      'CF_Connecting_IP: 203.0.113.8',
    )
    expect(request && valuesOf(request, 'x-real-ip')).toEqual([stranger])
    expect(request?.fields.filter(([, value]) => value.includes('203.0.113.8'))).toEqual([])
    expect(await statusOf(stranger, 'CF-Connecting-IP: 203.0.113.9')).toBe(200)
    expect(await statusOf(stranger, 'CF-Connecting-IP: 203.0.113.10')).toBe(429)
  })

  test('the header names the client over HTTP/2 too', async () => {
    const path = '/over-http2'
    await sendHttp2(connectHttp2(secure.port), { ':path': path, 'cf-connecting-ip': '203.0.113.11' })
    const request = backend.requests.find(({ target }) => target === path)
    expect(request && valuesOf(request, 'x-real-ip')).toEqual(['203.0.113.11'])
  })

  test('two lines of the header over HTTP/2 name nobody', async () => {
    const path = '/twice-over-http2'
    const lines = ['203.0.113.14', '203.0.113.15']
    await sendHttp2(connectHttp2(secure.port), { ':path': path, 'cf-connecting-ip': lines })
    const request = backend.requests.find(({ target }) => target === path)
    expect(request && valuesOf(request, 'x-real-ip')).toEqual(['127.0.0.1'])
    expect(request && valuesOf(request, 'cf-connecting-ip')).toEqual([])
  })
})

test("X-Real-IP of a proxy of one's own, which the gateway sets itself towards the backend", async () => {
  const request = await seenOf(
    behindNginx.port,
    cdn,
    'X-Real-IP: 203.0.113.12',
    'CF-Connecting-IP: 203.0.113.13',
  )
  expect(request && valuesOf(request, 'x-real-ip')).toEqual(['203.0.113.12'])
  const forged = await seenOf(behindNginx.port, stranger, 'X-Real-IP: 203.0.113.12')
  expect(forged && valuesOf(forged, 'x-real-ip')).toEqual([stranger])
})
