import { Metadata, status, type ServiceError } from '@grpc/grpc-js'
import { once } from 'node:events'
import { beforeAll, describe, expect, test } from 'vitest'
import { authorityFile, tlsSettings } from '../support/network/certificates.ts'
import { connectGrpc, startGrpcServer, type GrpcClient, type GrpcServer } from '../support/http/grpc.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { connectHttp2, sendHttp2 } from '../support/http/http2.ts'
import { CLOSED_PORT } from '../support/network/ports.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'
import { atSomePace } from '../support/limiter/paces.ts'
import { eventually } from '../support/wait/eventually.ts'
import { wallClockMs } from '../support/calendar/wall-clock.ts'

// gRPC calls, with gRPC's own client and server for Node.

const table = `limits:
  - { name: guarded, match: POST /test.Echo/Count, requests: 3, window: 10m }
`

const failureOf = (call: Promise<unknown>): Promise<ServiceError> =>
  call.then(
    () => {
      throw new Error('the call has succeeded')
    },
    (error: unknown) => error as ServiceError,
  )

describe.each([
  ['without TLS', false],
  ['with TLS', true],
])('%s', (_, tls) => {
  let server: GrpcServer
  let gateway: HostedGateway
  let client: GrpcClient

  beforeAll(async () => {
    server = await startGrpcServer({ tls })
    gateway = await startHosted({
      UPSTREAM_URL: `${tls ? 'https' : 'h2c'}://127.0.0.1:${server.port}`,
      UPSTREAM_TIMEOUT: '5s',
      CONFIG_FILE: writeConfigFile(table),
      ...(tls && { UPSTREAM_CA_FILE: authorityFile, ...tlsSettings() }),
    })
    client = connectGrpc(gateway.port, tls)
  })

  test('a call with one message each way has its metadata and trailers', async () => {
    const sent = new Metadata()
    sent.add('echo', 'one')
    sent.add('echo', 'two')
    sent.add('echo-bin', Buffer.of(0, 255, 10, 13))
    const { message, head, trailers } = await client.unary('hello', sent)
    expect(message.toString()).toBe('hello')
    for (const received of [head, trailers]) {
      expect(received.get('echo').join(', ')).toBe('one, two')
      expect(received.get('echo-bin')).toEqual([Buffer.of(0, 255, 10, 13)])
    }
  })

  test('messages of 4 MB pass', async () => {
    const large = Buffer.alloc(4 * 1024 * 1024, 'm')
    expect((await client.unary(large)).message.equals(large)).toBe(true)
  })

  test('many messages up, and many down', async () => {
    expect(await client.collect(Array.from({ length: 200 }, () => Buffer.alloc(10_000)))).toBe('2000000')
    expect(await client.collect([])).toBe('0')
    expect(await client.count(100, 30_000)).toEqual(Array.from({ length: 100 }, () => 30_000))
  })

  test('messages in turn, in both directions', async () => {
    const chat = client.chat()
    for (const said of ['a', 'b', 'c']) {
      chat.write(Buffer.from(said))
      const [answer] = (await once(chat, 'data')) as [Buffer]
      expect(answer.toString()).toBe(said)
    }
    const over = once(chat, 'status') as Promise<[{ code: number }]>
    chat.end()
    chat.resume()
    expect((await over)[0].code).toBe(status.OK)
  })

  test('an error, with its details and metadata', async () => {
    const sent = new Metadata()
    sent.set('echo-bin', Buffer.of(1))
    const failure = await failureOf(client.unary('fail', sent))
    expect(failure).toMatchObject({ code: status.NOT_FOUND, details: 'no such thing: ü' })
    expect(failure.metadata.get('echo-bin')).toEqual([Buffer.of(1)])
  })

  test('a deadline reaches the server, and ends the call there', async () => {
    // On a busy machine, the call may not reach the server before its deadline.
    await atSomePace(async (pace) => {
      const before = server.cancelled.length
      const failure = await failureOf(
        client.unary('wait', undefined, { deadline: wallClockMs() + 700 * pace }),
      )
      expect(failure.code).toBe(status.DEADLINE_EXCEEDED)
      expect(server.deadlines.at(-1)).toBeLessThan(700 * pace + 1)
      await eventually(
        'the server has heard that the call was cancelled',
        () => expect(server.cancelled.slice(before)).toEqual(['Unary']),
        { endMs: 5_000 * pace },
      )
    })
  })

  test('a cancelled call ends at the server', async () => {
    const before = server.cancelled.length
    const chat = client.chat()
    chat.on('error', () => undefined)
    chat.write(Buffer.from('a'))
    await once(chat, 'data')
    chat.cancel()
    await eventually('the server has heard that the stream was cancelled', () =>
      expect(server.cancelled.slice(before)).toEqual(['Chat']),
    )
  })

  test('a call over the limit is RESOURCE_EXHAUSTED, and says when to come back', async () => {
    const limited = (): Promise<number[]> => client.count(1, 1)
    let failure: ServiceError | undefined
    for (let i = 0; i < 4 && !failure; i++)
      await limited().catch((error: unknown) => {
        failure = error as ServiceError
      })
    expect(failure).toMatchObject({
      code: status.RESOURCE_EXHAUSTED,
      details: 'Too many requests, Please try after a while!',
    })
    const said = failure?.metadata.getMap() ?? {}
    expect(said['ratelimit-policy']).toBe('"guarded";q=3;w=600')
    expect(Number(said['grpc-retry-pushback-ms'])).toBe(Number(said['retry-after']) * 1000)
    const details = said['grpc-status-details-bin'] as Buffer
    expect(details.toString('latin1')).toContain('type.googleapis.com/google.rpc.RetryInfo')
    // The details end with the seconds, as a varint of two bytes.
    const [low = 0, high = 0] = details.subarray(-2)
    expect((low & 127) | (high << 7)).toBe(Number(said['retry-after']))
    const metrics = await fetch(`http://127.0.0.1:${gateway.adminPort}/metrics`)
    expect(await metrics.text()).toMatch(/^sluice_requests_total\{class="4xx"\} 1$/m)
  })
})

test('a refused gRPC-Web request gets an ordinary 429', async () => {
  const gateway = await startHosted({
    CONFIG_FILE: writeConfigFile('limits: [{ name: a, match: POST /a, requests: 1, window: 10m }]'),
    UPSTREAM_URL: `http://127.0.0.1:${CLOSED_PORT}`,
    ...tlsSettings(),
  })
  const session = connectHttp2(gateway.port)
  const call = { ':method': 'POST', ':path': '/a', 'content-type': 'application/grpc-web+proto' }
  expect((await sendHttp2(session, call)).status).toBe(502)
  expect((await sendHttp2(session, call)).status).toBe(429)
})

test('a server that is away is UNAVAILABLE', async () => {
  const gateway = await startHosted({ UPSTREAM_URL: `h2c://127.0.0.1:${CLOSED_PORT}` })
  expect(await failureOf(connectGrpc(gateway.port, false).unary('a'))).toMatchObject({
    code: status.UNAVAILABLE,
    details: 'The backend cannot be reached',
  })
})

test('a server that shuts down gracefully loses no call', async () => {
  const [first, second] = [await startGrpcServer(), await startGrpcServer()]
  const urls = [first, second].map(({ port }) => `h2c://127.0.0.1:${port}`)
  const gateway = await startHosted({
    CONFIG_FILE: writeConfigFile(`routes: [{ name: r, upstream: [${urls.join(', ')}] }]`),
    RATE_LIMITING_DISABLED: '1',
  })
  const client = connectGrpc(gateway.port, false)
  let isOver = false
  let answered = 0
  const failed: unknown[] = []
  const ask = async (): Promise<void> => {
    while (!isOver) {
      await client.unary('a').then(
        () => answered++,
        (error: unknown) => failed.push(error),
      )
    }
  }
  const asking = Array.from({ length: 16 }, ask)
  await eventually('fifty messages have come', () => expect(first.metadata.length).toBeGreaterThan(50))
  // The server sends GOAWAY on its connections, and accepts no further connection.
  await first.shutDown()
  const before = answered
  await eventually('two hundred more calls are answered', () =>
    expect(answered).toBeGreaterThan(before + 200),
  )
  isOver = true
  await Promise.all(asking)
  expect(failed).toEqual([])
})
