import { once } from 'node:events'
import { connect as connectTls } from 'node:tls'
import { describe, expect, test } from 'vitest'
import { sendRaw, startGateway } from '../support/gateway/gateway.ts'
import { startBackend } from '../support/http/backend.ts'
import { connectHttp2, sendHttp2 } from '../support/http/http2.ts'
import { tlsSettings } from '../support/network/certificates.ts'

// The gateway answers requests to the wrong port and malformed requests, and the log names the cause.

const plain = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
const takesHttps = '{"code":400,"error":"Plain HTTP request sent to an HTTPS port"}'

describe('plain HTTP on the HTTPS port', () => {
  test('plain HTTP on the HTTPS port is answered 400, however long it is, and logged once a minute', async () => {
    const { url } = await startBackend()
    const gateway = await startGateway({ UPSTREAM_URL: url, ...tlsSettings() })
    const long = `POST / HTTP/1.1\r\nHost: a\r\n${'X: y\r\n'.repeat(2_000)}\r\n`
    for (const request of [plain, long, 'HEAD / HTTP/1.0\r\n\r\n']) {
      const text = await sendRaw(gateway.port, request)
      expect(text).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n.*Connection: close\r\n\r\n/s)
      expect(text.endsWith(takesHttps)).toBe(true)
    }
    await gateway.process.waitForLine(
      /"requests":1,"status":400,"reason":"plain HTTP on the HTTPS port \(TLS_CERT_FILE\)","peer":"127.0.0.1"/,
    )
    // A connection that speaks neither protocol is closed.
    expect(await sendRaw(gateway.port, 'nonsense, and more of it than a record has')).not.toContain('HTTP/')
  })
})

describe('on the plain HTTP port', () => {
  test('TLS, a head that is too large and a broken target have lines that name the cause', async () => {
    const { url } = await startBackend()
    const gateway = await startGateway({ UPSTREAM_URL: url })
    for (const protocols of [['http/1.1'], ['h2']]) {
      const socket = connectTls({ port: gateway.port, ALPNProtocols: protocols, rejectUnauthorized: false })
      const [error] = (await once(socket, 'error')) as [NodeJS.ErrnoException]
      expect(error.code).toBe('ERR_SSL_WRONG_VERSION_NUMBER')
    }
    await gateway.process.waitForLine(
      /"status":400,"reason":"TLS handshake on a plain HTTP port \(TLS_CERT_FILE\)","peer"/,
    )
    expect(await sendRaw(gateway.port, `GET / HTTP/1.1\r\nX: ${'x'.repeat(100_000)}`)).toMatch(
      /^HTTP\/1\.1 431/,
    )
    await gateway.process.waitForLine(
      /"requests":1,"status":431,"reason":"[^"]*MAX_HEADER_SIZE[^"]*","peer":"127.0.0.1"/,
    )
    expect(await sendRaw(gateway.port, 'GET /a b HTTP/1.1\r\nHost: a\r\n\r\n')).toMatch(/^HTTP\/1\.1 400|505/)
    expect(await sendRaw(gateway.port, 'GET a HTTP/1.1\r\nHost: a\r\n\r\n')).toMatch(/^HTTP\/1\.1 400/)
    await gateway.process.waitForLine(/"status":400,"reason":"invalid request target","peer"/)
  })
})

describe('over HTTP/2', () => {
  test('a head that is too large has a line that names the cause', async () => {
    const { url } = await startBackend()
    const gateway = await startGateway({ UPSTREAM_URL: url })
    const session = connectHttp2(gateway.port, { cleartext: true })
    const large = { ':path': '/', 'x-a': 'x'.repeat(17_000) }
    expect(await sendHttp2(session, large)).toMatchObject({ status: 431 })
    await gateway.process.waitForLine(
      /"requests":1,"status":431,"reason":"[^"]*MAX_HEADER_SIZE[^"]*","peer":"127.0.0.1"/,
    )
  })
})
