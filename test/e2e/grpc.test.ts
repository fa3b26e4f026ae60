import { createServer, type Http2Server } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startBackend, type Backend } from '../support/http/backend.ts'
import { tlsSettings } from '../support/network/certificates.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { connectHttp2, sendHttp2 } from '../support/http/http2.ts'

// A healthy gRPC server speaks HTTP/2. An error that calls it unreachable would send its operator looking in the wrong place.

let grpcServer: Http2Server
let gateway: HostedGateway
let ordinary: Backend
let beforeOrdinary: HostedGateway

beforeAll(async () => {
  grpcServer = createServer()
  grpcServer.on('session', (session) => session.on('error', () => undefined))
  await new Promise<void>((resolve) => grpcServer.listen(0, '127.0.0.1', resolve))
  const { port } = grpcServer.address() as AddressInfo
  gateway = await startHosted({ UPSTREAM_URL: `http://127.0.0.1:${port}`, ...tlsSettings() })
  ordinary = await startBackend()
  beforeOrdinary = await startHosted({ UPSTREAM_URL: ordinary.url, ...tlsSettings() })
})

afterAll(() => {
  grpcServer.close()
})

const call = { ':method': 'POST', ':path': '/greeter/hello', te: 'trailers' }

test('an HTTP/2 backend behind http:// is an error that says so', async () => {
  const { status, body } = await sendHttp2(connectHttp2(gateway.port), { ':path': '/' })
  expect({ status, body }).toEqual({
    status: 502,
    body: '{"code":502,"error":"The backend speaks HTTP/2, so its URL must begin with h2c://"}',
  })
  const [line] = await gateway.waitForLine(/^.*"requests to the backend failed".*$/)
  expect(JSON.parse(line)).toMatchObject({
    kind: 'protocol',
    reason: expect.stringContaining('its URL must begin with h2c://') as string,
  })
})

test('gRPC-Web is forwarded to an HTTP/1.1 backend', async () => {
  const headers = { ...call, 'content-type': 'application/grpc-web+proto' }
  const { status } = await sendHttp2(connectHttp2(beforeOrdinary.port), headers, '\0\0\0\0\0')
  expect(status).toBe(200)
})
