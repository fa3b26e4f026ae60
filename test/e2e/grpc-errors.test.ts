import { setTimeout as sleep } from 'node:timers/promises'
import { Metadata, status, type ServiceError } from '@grpc/grpc-js'
import { beforeAll, describe, expect, test } from 'vitest'
import { connectGrpc, startGrpcServer, type GrpcClient, type GrpcServer } from '../support/http/grpc.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { startHttp2Backend } from '../support/http/http2-backend.ts'
import { connectHttp2, sendHttp2 } from '../support/http/http2.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'

// The gateway's own responses to gRPC calls, whose clients look for the outcome in `grpc-status`.

let server: GrpcServer

beforeAll(async () => {
  server = await startGrpcServer()
})

async function startBefore(table: string, env: Record<string, string> = {}): Promise<HostedGateway> {
  return startHosted({
    UPSTREAM_URL: `h2c://127.0.0.1:${server.port}`,
    CONFIG_FILE: writeConfigFile(table),
    ...env,
  })
}

const failureOf = (call: Promise<unknown>): Promise<ServiceError> =>
  call.then(
    () => {
      throw new Error('the call has succeeded')
    },
    (error: unknown) => error as ServiceError,
  )

const noLimits = 'limits: []\n'

const once1 = `limits:
  - { name: each, match: 'POST /test.Echo/*', requests: 1, window: 10m REFUSAL }
`

const call = {
  ':method': 'POST',
  ':path': '/test.Echo/Unary',
  'content-type': 'application/grpc+proto',
  te: 'trailers',
}

test('the refusal setting does not apply to gRPC calls', async () => {
  const refusal = ", refusal: { status: 503, body: 'Later.', headers: { x-support: here } }"
  const gateway = await startBefore(once1.replace(' REFUSAL', refusal))
  const client = connectGrpc(gateway.port, false)
  await client.unary('a')
  const failure = await failureOf(client.unary('a'))
  expect(failure.code).toBe(status.RESOURCE_EXHAUSTED)
  expect(failure.metadata.get('x-support')).toEqual([])
  expect(failure.metadata.get('retry-after')).toHaveLength(1)
  const other = await gateway.send('POST', '/test.Echo/Unary')
  expect(other).toMatchObject({ status: 503, body: 'Later.' })
})

test('a call by a banned client is told when the ban ends', async () => {
  const ban = ', ban: { after: 1, for: 1h }'
  const client = connectGrpc((await startBefore(once1.replace(' REFUSAL', ban))).port, false)
  await client.unary('a')
  await failureOf(client.unary('a'))
  const failure = await failureOf(client.unary('a'))
  expect(failure.code).toBe(status.RESOURCE_EXHAUSTED)
  expect(Number(failure.metadata.get('grpc-retry-pushback-ms')[0])).toBeGreaterThan(3_500_000)
})

test('the access line has the HTTP status', async () => {
  const gateway = await startBefore(once1.replace(' REFUSAL', ''), { ACCESS_LOG: 'true' })
  const client = connectGrpc(gateway.port, false)
  await client.unary('a')
  await failureOf(client.unary('a'))
  const [line] = await gateway.waitForLine(/^.*"status":429.*$/)
  expect(JSON.parse(line)).toMatchObject({ path: '/test.Echo/Unary', status: 429 })
})

test.each([
  ['a denied client', `denyList: [{ ip: 127.0.0.1 }]\n${noLimits}`, {}, 'a', status.PERMISSION_DENIED],
  [
    'a message over MAX_BODY_SIZE',
    noLimits,
    { MAX_BODY_SIZE: '1k' },
    'a'.repeat(2000),
    status.RESOURCE_EXHAUSTED,
  ],
  ['a server that does not answer', noLimits, { UPSTREAM_TIMEOUT: '300ms' }, 'wait', status.UNAVAILABLE],
])('%s', async (_, table, env, message, code) => {
  const client = connectGrpc((await startBefore(table, env)).port, false)
  expect((await failureOf(client.unary(message))).code).toBe(code)
})

// gRPC for Node and tonic send the content type after the metadata, others before it.
describe('a call with more metadata than MAX_HEADER_SIZE gets its status', () => {
  const large = { 'x-large': 'x'.repeat(17_000) }

  test('a client of gRPC for Node', async () => {
    const client = connectGrpc((await startBefore(noLimits)).port, false)
    const failure = await failureOf(client.unary('a', Metadata.fromHttp2Headers(large)))
    expect(failure).toMatchObject({
      code: status.RESOURCE_EXHAUSTED,
      details: 'The request header fields are too large',
    })
    expect((await client.unary('a')).message.toString()).toBe('a')
  })

  test.each([
    ['before', { ...call, ...large }],
    ['after', { ':method': 'POST', ':path': call[':path'], ...large, 'content-type': call['content-type'] }],
  ])('the content type %s the metadata', async (_, fields) => {
    const session = connectHttp2((await startBefore(noLimits)).port, { cleartext: true })
    const reply = await sendHttp2(session, fields, '\0\0\0\0\0')
    expect(reply).toMatchObject({ status: 200, headers: { 'grpc-status': '8' } })
  })
})

test('the head of an error ends the stream, and is not kept by caches', async () => {
  const gateway = await startBefore(once1.replace(' REFUSAL', ''))
  const session = connectHttp2(gateway.port, { cleartext: true })
  await sendHttp2(session, call, '\0\0\0\0\0')
  const refused = await sendHttp2(session, call, '\0\0\0\0\0')
  expect(refused).toMatchObject({ status: 200, body: '', resetCode: 0 })
  expect(refused.headers).toMatchObject({
    'content-type': 'application/grpc',
    'grpc-status': '8',
    'cache-control': 'no-store',
  })
  expect(refused.headers).not.toHaveProperty('content-length')
})

/**
 * Otherwise a cache that keeps every 200 for a file name would store the gateway's error, which an attacker has caused, in place of the
 * file.
 */
describe('an error of a request that is not a call has its own status', () => {
  test.each([
    ['GET', { ':method': 'GET', 'content-type': 'application/grpc' }],
    ['HEAD', { ':method': 'HEAD', 'content-type': 'application/grpc' }],
    ['another type', { ':method': 'POST', 'content-type': 'application/grpcx' }],
    ['gRPC-Web', { ':method': 'POST', 'content-type': 'application/grpc-web' }],
  ])('%s', async (_, fields) => {
    const gateway = await startBefore(`denyList: [{ ip: 127.0.0.1 }]\n${noLimits}`)
    const session = connectHttp2(gateway.port, { cleartext: true })
    const reply = await sendHttp2(session, { ':path': '/app.js', ...fields })
    expect(reply.status).toBe(403)
    expect(reply.headers).not.toHaveProperty('grpc-status')
  })
})

test('calls that the server fails do not reset streams there, and stay on one connection', async () => {
  const failing = await startHttp2Backend((stream) => {
    stream.respond(
      { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': '5' },
      { endStream: true },
    )
    stream.resume()
  })
  const gateway = await startHosted({ UPSTREAM_URL: failing.url })
  const session = connectHttp2(gateway.port, { cleartext: true })
  for (let i = 0; i < 6; i++) {
    const replies = await Promise.all(
      Array.from({ length: 30 }, () => sendHttp2(session, call, '\0\0\0\0\0')),
    )
    expect(replies.every(({ headers }) => headers['grpc-status'] === '5')).toBe(true)
  }
  expect(failing.resets).toEqual([])
  expect(failing.sessions.length).toBe(1)
})

describe('a call whose client may still send', () => {
  /** Calls a method whose server sends its head with the first message. So during the delay, the gateway waits for the client. */
  async function sayLate(client: GrpcClient, ms: number): Promise<number> {
    const chat = client.chat()
    const over = new Promise<number>((resolve) => chat.on('status', ({ code }) => resolve(code)))
    chat.on('error', () => undefined)
    chat.resume()
    await sleep(ms)
    chat.write(Buffer.from('a'))
    chat.end()
    return over
  }

  test('a call whose client may still send is not ended by the timeouts of the server', async () => {
    // Long enough for the server to answer after the client has sent, even on a busy machine.
    const env = { UPSTREAM_TIMEOUT: '1500ms', UPSTREAM_IDLE_TIMEOUT: '1500ms' }
    expect(await sayLate(connectGrpc((await startBefore(noLimits, env)).port, false), 2500)).toBe(status.OK)
  })

  test('a client must send within BODY_TIMEOUT until the server has begun to answer', async () => {
    const gateway = await startBefore(noLimits, { BODY_TIMEOUT: '300ms', MIN_BODY_RATE: '0' })
    expect(await sayLate(connectGrpc(gateway.port, false), 3000)).toBe(status.UNKNOWN)
  })
})

test('a gRPC client retries a refused call if its retry policy names the status', async () => {
  const gateway = await startBefore(once1.replace('10m REFUSAL', '3s'))
  const policy = {
    name: [{ service: 'test.Echo' }],
    retryPolicy: {
      maxAttempts: 3,
      initialBackoff: '0.01s',
      maxBackoff: '0.01s',
      backoffMultiplier: 1,
      retryableStatusCodes: ['RESOURCE_EXHAUSTED'],
    },
  }
  const client = connectGrpc(gateway.port, false, {
    'grpc.enable_retries': 1,
    'grpc.service_config': JSON.stringify({ loadBalancingConfig: [], methodConfig: [policy] }),
  })
  await client.unary('first')
  expect((await client.unary('second')).message.toString()).toBe('second')
  const metrics = await fetch(`http://127.0.0.1:${gateway.adminPort}/metrics`)
  expect(await metrics.text()).toMatch(/^sluice_requests_total\{class="4xx"\} 1$/m)
})

test('a call that is refused while its client may still send has its status', async () => {
  const client = connectGrpc((await startBefore(once1.replace(' REFUSAL', ''))).port, false)
  await client.unary('a')
  const chat = client.chat()
  const code = new Promise<number>((resolve) => chat.on('status', (end) => resolve(end.code)))
  chat.on('error', () => undefined)
  chat.write(Buffer.alloc(100_000))
  expect(await code).toBe(status.RESOURCE_EXHAUSTED)
})
