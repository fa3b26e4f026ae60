import { beforeAll, describe, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { tlsSettings } from '../support/network/certificates.ts'
import { send, sendRaw } from '../support/gateway/gateway.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { connectHttp2, sendHttp2 } from '../support/http/http2.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

// Each reply of the gateway itself has the request's id from the log, so that a user can tell an operator which request it was. Responses
// of the backend stay unchanged.

const limits = 'limits: [{ name: few, match: "* /few", requests: 1, window: 1h }]\n'
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const large = 'x'.repeat(4096)

type Asked = {
  readonly status: number
  readonly method: string
  readonly path: string
  readonly headers?: Record<string, string>
  readonly body?: string
}

/** How to send a request in each HTTP version. */
const asked: Asked[] = [
  { status: 429, method: 'GET', path: '/few' },
  { status: 400, method: 'GET', path: '/%zz' },
  { status: 405, method: 'TRACE', path: '/' },
  { status: 204, method: 'OPTIONS', path: '*' },
  { status: 413, method: 'POST', path: '/large', headers: { 'content-length': '4096' }, body: large },
  { status: 413, method: 'POST', path: '/streamed', body: large },
  { status: 414, method: 'GET', path: `/${'x'.repeat(9000)}` },
  { status: 502, method: 'GET', path: '/broken' },
  { status: 504, method: 'GET', path: '/silent' },
]

const settings = { MAX_BODY_SIZE: '2k', ACCESS_LOG: '1' }
/** Only for requests that a timeout must end, as other responses may be late on a busy machine. */
const hasty = { UPSTREAM_TIMEOUT: '300ms', BODY_TIMEOUT: '200ms' }
let plain: HostedGateway
let overTls: HostedGateway
let slowOverTls: HostedGateway
let slow: HostedGateway

beforeAll(async () => {
  const backend = await startBackend((request, response) => {
    if (request.url === '/broken') request.socket.destroy()
    else if (request.url !== '/silent') request.resume().on('end', () => response.end('ok'))
  })
  const env = { ...settings, UPSTREAM_URL: backend.url, CONFIG_FILE: writeConfigFile(limits) }
  plain = await startHosted({ ...env, TRUSTED_PROXIES: '127.0.0.1' })
  slow = await startHosted({ ...env, ...hasty })
  overTls = await startHosted({ ...env, ...tlsSettings() })
  slowOverTls = await startHosted({ ...env, ...tlsSettings(), ...hasty })
})

function loggedIds(gateway: HostedGateway, status: number): string[] {
  const lines = gateway.output().split('\n')
  return lines.flatMap((line) => {
    if (!line.includes('"msg":"request"')) return []
    const logged = JSON.parse(line) as { status: number; requestId: string }
    return logged.status === status ? [logged.requestId] : []
  })
}

describe('over HTTP/1.1', () => {
  test.each(asked)('$status to $method $path', async ({ status, method, path, headers, body }) => {
    const options = { ...(headers && { headers }), ...(body !== undefined && { body }) }
    const gateway = status === 504 ? slow : plain
    if (status === 429)
      expect((await plain.send(method, path, options)).headers).not.toHaveProperty('x-request-id')
    const reply = await gateway.send(method, path, options)
    expect(reply.status).toBe(status)
    const id = reply.headers['x-request-id']
    expect(id).toMatch(uuid)
    await eventually('the id is in the log', () => expect(loggedIds(gateway, status)).toContain(id))
  })

  test('408, 413 to chunks, and 400 to a body that cannot be read', async () => {
    const head = 'POST /slow HTTP/1.1\r\nHost: a\r\n'
    const late = await sendRaw(slow.port, `${head}Content-Length: 9\r\n\r\n`)
    expect(late).toMatch(/^HTTP\/1.1 408 [^]*\r\nx-request-id: [0-9a-f-]{36}\r\n/i)
    const chunks = `1000\r\n${large}\r\n0\r\n\r\n`
    const tooLarge = await sendRaw(plain.port, `${head}Transfer-Encoding: chunked\r\n\r\n${chunks}`)
    expect(tooLarge).toMatch(/^HTTP\/1.1 413 [^]*\r\nx-request-id: [0-9a-f-]{36}\r\n/i)
    const unreadable = await sendRaw(plain.port, `${head}Transfer-Encoding: chunked\r\n\r\nno size\r\n`)
    expect(unreadable).toMatch(/^HTTP\/1.1 400 [^]*\r\nx-request-id: [0-9a-f-]{36}\r\n/i)
  })

  test('a refused WebSocket handshake, and the id that a trusted proxy has given', async () => {
    const headers = {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': Buffer.alloc(16).toString('base64'),
      'x-request-id': 'from-the-proxy/7',
    }
    await plain.send('GET', '/few')
    const { status, headers: received } = await send(plain.port, 'GET', '/few', { headers })
    expect(status).toBe(429)
    expect(received['x-request-id']).toBe('from-the-proxy/7')
  })

  test('responses of the backend, and errors without a request, have no id', async () => {
    expect((await plain.send('GET', '/')).headers).not.toHaveProperty('x-request-id')
    expect(await sendRaw(plain.port, 'no request\r\n\r\n')).not.toMatch(/x-request-id/i)
  })
})

describe('over HTTP/2', () => {
  test.each(asked)('$status to $method $path', async ({ status, method, path, headers, body }) => {
    const gateway = status === 504 ? slowOverTls : overTls
    const session = connectHttp2(gateway.port)
    const fields = { ':method': method, ':path': path, ...headers }
    if (status === 429) await sendHttp2(session, fields, body)
    const reply = await sendHttp2(session, fields, body)
    expect(reply.status).toBe(status)
    const id = reply.headers['x-request-id']
    expect(id).toMatch(uuid)
    await eventually('the id is in the log', () => expect(loggedIds(gateway, status)).toContain(id))
    session.close()
  })
})
