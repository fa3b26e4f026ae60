import type { RequestListener } from 'node:http'
import { connect, type Socket } from 'node:net'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, test } from 'vitest'
import { startBackend, type Backend } from '../support/http/backend.ts'
import { tlsSettings } from '../support/network/certificates.ts'
import { send, type Reply } from '../support/gateway/gateway.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { connectHttp2, sendHttp2 } from '../support/http/http2.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { parseExposition } from '../support/metrics/prometheus.ts'
import {
  connectRawHttp2,
  endHeaders,
  endStream,
  frame,
  frameTypes,
  requestFields,
  uint32,
} from '../support/http/raw-http2.ts'
import { freshRedis } from '../support/redis/redis.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

// The body of a request states the units to reserve, and is held back until they are known. A body that cannot be read must not cost less,
// and a body must not change on its way to the backend.

const table = `limits:
  - name: tokens
    match: '* /chat'
    requests: 1000
    window: 15m
    cost: { reserve: { json: max_tokens, else: 70 }, settle: 'header:x-cost' }
  - name: strict
    match: POST /strict
    requests: 1000
    window: 15m
    cost: { reserve: json:max_tokens, settle: 'header:x-cost' }
  - name: input
    match: POST /both
    requests: 1000
    window: 15m
    cost: { reserve: json:input, settle: 'header:x-cost' }
  - name: output
    match: POST /both
    requests: 5000
    window: 15m
    cost: { reserve: json:output.most, settle: 'header:x-cost' }
`

function configFile(): string {
  const file = join(makeTemporaryDirectory(), 'sluice.yaml')
  writeFileSync(file, table)
  return file
}

let lastClient = 0

/** A client that has no counters yet. */
function newClient(): string {
  lastClient += 1
  return `127.0.77.${lastClient}`
}

async function usedBy(gateway: HostedGateway, ip: string, policy = 'tokens'): Promise<unknown> {
  const { body } = await askOperator(gateway, 'POST', '/api/clients/inspect', { policy, client: { ip } })
  return (body as { states: { used: number }[] }).states[0]?.used
}

async function unread(gateway: HostedGateway, reason: string, policy = 'tokens'): Promise<number> {
  const { body } = await send(gateway.adminPort, 'GET', '/metrics')
  return parseExposition(body).value('sluice_unread_reserves_total', { policy, reason })
}

/** The complete bodies that reached the backend, in order. */
const bodies: string[] = []

/** Answers with the cost that the request states, if it states one. */
const answer: RequestListener = (request, response) => {
  let body = ''
  request.setEncoding('latin1')
  request.on('data', (text: string) => (body += text))
  request.on('end', () => {
    bodies.push(body)
    const cost = request.headers['x-cost-to-say']
    response.writeHead(200, cost === undefined ? {} : { 'x-cost': cost }).end('ok')
  })
}

describe.each(['memory', 'workers', 'Redis'] as const)('counted in %s', (place) => {
  test('the units in the body are reserved, and settled', async () => {
    let arrived = 0
    const held: (() => void)[] = []
    const backend = await startBackend((request, response) => {
      arrived += 1
      request.resume()
      held.push(() => response.writeHead(200, { 'x-cost': '10' }).end())
    })
    const env = {
      UPSTREAM_URL: backend.url,
      CONFIG_FILE: configFile(),
      STORE_TIMEOUT: '30s',
      ...(place === 'workers' && { WORKERS: '2' }),
      ...(place === 'Redis' && { REDIS_URL: await freshRedis() }),
    }
    const gateways = await Promise.all(
      Array.from({ length: place === 'Redis' ? 2 : 1 }, () => startHosted(env)),
    )
    const [first] = gateways
    if (!first) throw new RangeError('at least one gateway')
    const from = newClient()
    // No matter how many requests are concurrent, the quota is enough for four times 240, but not for a fifth.
    const answers = Array.from({ length: 30 }, (_, index) =>
      (gateways[index % gateways.length] ?? first).send('POST', '/chat', {
        from,
        body: '{"messages":[],"max_tokens":240}',
      }),
    )
    // Wait for every decision before the backend answers: a late request would get a share of the refund.
    let refused = 0
    const count = ({ status }: Reply): void => void (refused += status === 429 ? 1 : 0)
    for (const answer of answers) answer.then(count, () => undefined)
    await eventually('all requests have passed or were refused', () =>
      expect([arrived, refused]).toEqual([4, 26]),
    )
    expect(await usedBy(first, from)).toBe(960)
    const [small, none] = [
      { from, body: '{"max_tokens":41}' },
      { from, body: '{}' },
    ]
    expect((await first.send('POST', '/chat', small)).status).toBe(429)
    expect((await first.send('POST', '/chat', none)).status).toBe(429)
    await eventually('four requests are held', () => held.length >= 4)
    for (const end of held) end()
    const statuses = (await Promise.all(answers)).map(({ status }) => status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(4)
    expect(statuses.filter((status) => status === 429)).toHaveLength(26)
    await eventually('the unused units are refunded', async () => expect(await usedBy(first, from)).toBe(40))
  })
})

describe('over HTTP/1.1', () => {
  let backend: Backend
  let gateway: HostedGateway

  beforeAll(async () => {
    backend = await startBackend(answer)
    gateway = await startHosted({
      UPSTREAM_URL: backend.url,
      CONFIG_FILE: configFile(),
      MAX_BODY_SIZE: '1m',
    })
  })

  const json = { 'content-type': 'application/json' }

  test.each<[string, string, string | Buffer | undefined, Record<string, string>, number, string?]>([
    ['a number', 'POST', '{"max_tokens":12}', json, 12],
    ['a number above all there is', 'POST', '{"max_tokens":1e400}', json, 1000],
    ['no number', 'POST', '{}', json, 70, 'missing'],
    ['no body', 'POST', undefined, {}, 70, 'missing'],
    ['a GET', 'GET', undefined, {}, 70, 'missing'],
    ['a number below 0', 'POST', '{"max_tokens":-1}', json, 1000, 'number'],
    ['a text', 'POST', '{"max_tokens":"12"}', json, 1000, 'number'],
    ['two numbers', 'POST', '{"max_tokens":1,"max_tokens":12}', json, 1000, 'repeated'],
    ['no JSON', 'POST', '{"max_tokens":12', json, 1000, 'json'],
    [
      'a form',
      'POST',
      '{"max_tokens":12}',
      { 'content-type': 'application/x-www-form-urlencoded' },
      1000,
      'type',
    ],
    [
      'compressed',
      'POST',
      gzipSync('{"max_tokens":12}'),
      { ...json, 'content-encoding': 'gzip' },
      1000,
      'encoding',
    ],
    ['too large', 'POST', JSON.stringify({ max_tokens: 12, text: 'x'.repeat(70_000) }), json, 1000, 'size'],
  ])('%s', async (_, method, body, headers, units, reason) => {
    const from = newClient()
    const before = reason === undefined ? 0 : await unread(gateway, reason)
    const reply = await gateway.send(method, '/chat', { from, headers, ...(body !== undefined && { body }) })
    expect(reply).toMatchObject({ status: 200, body: 'ok' })
    expect(reply.headers['ratelimit']).toMatch(`"tokens";r=${1000 - units};`)
    expect(bodies.at(-1)).toBe(Buffer.from(body ?? '').toString('latin1'))
    if (reason !== undefined) expect(await unread(gateway, reason)).toBe(before + 1)
    // Such a request costs the same again, and is refused if the remaining quota is too small.
    const more = await gateway.send(method, '/chat', { from, headers, ...(body !== undefined && { body }) })
    expect(more.status).toBe(units === 1000 ? 429 : 200)
  })

  test('chunks, more of them than are read', async () => {
    const from = newClient()
    const headers = { ...json, 'transfer-encoding': 'chunked' }
    const body = JSON.stringify({ max_tokens: 12, text: 'x'.repeat(300_000) })
    expect((await gateway.send('POST', '/chat', { from, headers, body })).status).toBe(200)
    expect(bodies.at(-1)).toBe(body)
    expect(await usedBy(gateway, from)).toBe(1000)
  })

  test('a body above MAX_BODY_SIZE is refused', async () => {
    const from = newClient()
    const body = 'x'.repeat(1_100_000)
    expect((await gateway.send('POST', '/chat', { from, headers: json, body })).status).toBe(413)
    expect(await usedBy(gateway, from)).toBe(0)
  })

  test('without `else` a request that states no number reserves the whole quota', async () => {
    const from = newClient()
    const reply = await gateway.send('POST', '/strict', {
      from,
      headers: { 'x-cost-to-say': '5' },
      body: '{}',
    })
    expect(reply.headers['ratelimit']).toMatch('"strict";r=995;')
    expect((await gateway.send('POST', '/strict', { from, body: '{}' })).status).toBe(429)
    expect((await gateway.send('POST', '/strict', { from, body: '{"max_tokens":995}' })).status).toBe(200)
  })

  test('several rules read each its own number', async () => {
    const from = newClient()
    const body = '{"input":30,"output":{"most":400}}'
    const reply = await gateway.send('POST', '/both', { from, body })
    expect(reply.headers['ratelimit']).toMatch(/"input";r=970;t=\d+, "output";r=4600;/)
    await gateway.send('POST', '/both', { from, headers: { 'x-cost-to-say': '7' }, body })
    await eventually('the used units are charged', async () =>
      expect(await usedBy(gateway, from, 'output')).toBe(407),
    )
    expect(await usedBy(gateway, from, 'input')).toBe(37)
  })

  test('a client that waits for 100 gets it, even if it is refused then', async () => {
    const from = newClient()
    for (const status of [200, 429]) {
      const client = await talk(gateway.port, from)
      client.write(
        'POST /chat HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nConnection: close\r\nContent-Length: 18\r\n\r\n',
      )
      await eventually('the client may go on', () =>
        expect(client.received()).toBe('HTTP/1.1 100 Continue\r\n\r\n'),
      )
      client.write('{"max_tokens":700}')
      await eventually('the answer has come', () =>
        expect(client.received()).toMatch(`Continue\r\n\r\nHTTP/1.1 ${status} `),
      )
      await client.closed
    }
    expect(bodies.at(-1)).toBe('{"max_tokens":700}')
  })

  test('a body too large to be read is not asked for with 100 Continue', async () => {
    const from = newClient()
    await gateway.send('POST', '/chat', { from, body: '{"max_tokens":700}' })
    const client = await talk(gateway.port, from)
    client.write('POST /chat HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 70000\r\n\r\n')
    await client.closed
    expect(client.received()).toMatch(/^HTTP\/1.1 429 /)
  })

  test('pipelined requests are answered in turn, and their bodies kept apart', async () => {
    const from = newClient()
    const client = await talk(gateway.port, from)
    const post = (body: string): string =>
      `POST /chat HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`
    client.write(
      post('{"max_tokens":600}') +
        post('{"max_tokens":500}') +
        'POST /chat HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n7\r\n{"max_t\r\nB\r\nokens":300}\r\n0\r\n\r\n' +
        'GET /free HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
    )
    await client.closed
    const statuses = client.received().match(/(?<=HTTP\/1.1 )\d{3}/g)
    expect(statuses).toEqual(['200', '429', '200', '200'])
    expect(bodies.slice(-3)).toEqual(['{"max_tokens":600}', '{"max_tokens":300}', ''])
    expect(await usedBy(gateway, from)).toBe(900)
  })

  test('a refused request does not end its connection, however much of its body has come', async () => {
    const from = newClient()
    const client = await talk(gateway.port, from)
    const head = 'POST /chat HTTP/1.1\r\nHost: a\r\n'
    client.write(`${head}Content-Length: 18\r\n\r\n{"max_tokens":999}`)
    await eventually('the answer has come', () => expect(client.received()).toMatch(/200 OK[^]*ok\r\n/))
    for (let round = 0; round < 3; round++) {
      client.write(`${head}Content-Length: 16\r\n\r\n{"max_to`)
      await sleep(20)
      client.write('kens":9}')
      await eventually('the refusal of the round has come', () =>
        expect(client.received().split(' 429 ')).toHaveLength(round + 2),
      )
    }
    client.write('GET /free HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
    await client.closed
    expect(client.received()).toMatch(/429[^]*200 OK[^]*ok\r\n/)
  })

  test('a refused request of which more follows than is read does not keep its connection', async () => {
    const from = newClient()
    await gateway.send('POST', '/chat', { from, body: '{"max_tokens":1000}' })
    const client = await talk(gateway.port, from)
    client.write('POST /chat HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n')
    const chunk = `2000\r\n${'x'.repeat(0x2000)}\r\n`
    for (let sent = 0; sent < 12; sent++) client.write(chunk)
    await eventually('the refusal ends the connection', () =>
      expect(client.received()).toMatch(/^HTTP\/1.1 429 [^]*connection: close/i),
    )
    await client.closed
  })

  test('a client that leaves before its body is whole is not counted', async () => {
    const from = newClient()
    const seen = backend.seen.length
    for (let round = 0; round < 20; round++) {
      const client = await talk(gateway.port, from)
      client.write('POST /chat HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{"max_tokens":12')
      await sleep(5)
      if (round % 2 === 0) client.socket.resetAndDestroy()
      else client.socket.end()
      await client.closed
    }
    expect(await usedBy(gateway, from)).toBe(0)
    expect(backend.seen).toHaveLength(seen)
    await eventually('no byte is held', async () => expect(await heldBytes(gateway)).toBe(0))
  })

  test('a body that comes too slowly is refused', async () => {
    const from = newClient()
    const hasty = await startHosted({
      UPSTREAM_URL: backend.url,
      CONFIG_FILE: configFile(),
      BODY_TIMEOUT: '600ms',
      MIN_BODY_RATE: '20',
    })
    const client = await talk(hasty.port, from)
    client.write('POST /chat HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{')
    const timer = setInterval(() => client.socket.writable && client.write(' '), 200)
    await client.closed
    clearInterval(timer)
    expect(client.received()).toMatch(/^HTTP\/1.1 408 /)
    expect(await usedBy(hasty, from)).toBe(0)
  })

  test('a malformed body is refused, and not counted', async () => {
    const from = newClient()
    const client = await talk(gateway.port, from)
    client.write('POST /chat HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\nzz\r\n')
    await client.closed
    expect(client.received()).toMatch(/^HTTP\/1.1 400 /)
    expect(await usedBy(gateway, from)).toBe(0)
  })

  test('a rule without it does not wait for the body', async () => {
    const client = await talk(gateway.port, newClient())
    const seen = backend.seen.length
    client.write('POST /other HTTP/1.1\r\nHost: a\r\nContent-Length: 99999\r\n\r\n')
    await eventually('the request has arrived', () => expect(backend.seen).toHaveLength(seen + 1))
    client.socket.destroy()
  })

  test('no body stays in memory, and no request caused an exception', async () => {
    await eventually('no byte is held', async () => expect(await heldBytes(gateway)).toBe(0))
    const { body } = await send(gateway.adminPort, 'GET', '/metrics')
    expect(parseExposition(body).value('sluice_uncaught_errors_total', { place: 'request' })).toBe(0)
  })
})

describe('over HTTP/2', () => {
  let backend: Backend
  let gateway: HostedGateway

  beforeAll(async () => {
    backend = await startBackend(answer)
    gateway = await startHosted({ UPSTREAM_URL: backend.url, CONFIG_FILE: configFile(), ...tlsSettings() })
  })

  const post = { ':method': 'POST', ':path': '/chat' }

  test('the units in the body are reserved over HTTP/2', async () => {
    const from = newClient()
    const session = connectHttp2(gateway.port, { localAddress: from })
    const large = JSON.stringify({ max_tokens: 1, text: 'x'.repeat(300_000) })
    const replies = [
      await sendHttp2(session, post, '{"max_tokens":12}'),
      await sendHttp2(session, { ...post, 'content-length': 17 }, '{"max_tokens":12}'),
      await sendHttp2(session, post),
      await sendHttp2(session, post, ''),
      await sendHttp2(session, post, large),
      await sendHttp2(session, { ...post, expect: '100-continue' }, (stream) =>
        stream.once('continue', () => stream.end('{"max_tokens":836}')),
      ),
      await sendHttp2(session, post, '{"max_tokens":1}'),
    ]
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200, 429, 200, 429])
    expect(bodies.slice(-5)).toEqual(['{"max_tokens":12}', '{"max_tokens":12}', '', '', '{"max_tokens":836}'])
    expect(await usedBy(gateway, from)).toBe(1000)
  })

  test('a refused body is released, however much of it was to come', async () => {
    const from = newClient()
    const session = connectHttp2(gateway.port, { localAddress: from })
    await sendHttp2(session, post, '{"max_tokens":1000}')
    const large = 'x'.repeat(300_000)
    const replies = await Promise.all(Array.from({ length: 10 }, () => sendHttp2(session, post, large)))
    expect(replies.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 429))
    await eventually('no byte is held', async () => expect(await heldBytes(gateway)).toBe(0))
    expect((await sendHttp2(session, { ':path': '/free' })).status).toBe(200)
  })

  test.each([
    ['is too large', 413, { MAX_BODY_SIZE: '100k' }],
    ['has no backend', 502, { UPSTREAM_URL: 'http://127.0.0.1:9' }],
  ])('releases the held body when the client %s', async (_, status, env) => {
    const failing = await startHosted({
      UPSTREAM_URL: backend.url,
      CONFIG_FILE: configFile(),
      ...tlsSettings(),
      ...env,
    })
    const session = connectHttp2(failing.port)
    expect((await sendHttp2(session, post, 'x'.repeat(300_000))).status).toBe(status)
    await eventually('no byte is held', async () => expect(await heldBytes(failing)).toBe(0))
    const { body } = await send(failing.adminPort, 'GET', '/metrics')
    expect(
      parseExposition(body).value('sluice_requests_total', { class: `${Math.floor(status / 100)}xx` }),
    ).toBe(1)
  })

  test('a large body passes whole', async () => {
    const session = connectHttp2(gateway.port, { localAddress: newClient() })
    const large = JSON.stringify({ max_tokens: 1, text: 'x'.repeat(300_000) })
    expect((await sendHttp2(session, post, large)).status).toBe(200)
    expect(bodies.at(-1)).toBe(large)
  })

  test('a stream that is reset before its body is whole is not counted, and others go on', async () => {
    const client = await connectRawHttp2(gateway.port)
    const fields = requestFields('POST', '/chat')
    for (let stream = 1; stream < 40; stream += 2) {
      client.send(
        frame(frameTypes.headers, endHeaders, stream, fields),
        frame(frameTypes.data, 0, stream, Buffer.from('{"max_tokens":12')),
      )
      if (stream % 4 === 1) await sleep(10)
      client.send(frame(frameTypes.rstStream, 0, stream, uint32(8)))
    }
    client.send(
      frame(frameTypes.headers, endHeaders, 41, fields),
      frame(frameTypes.data, endStream, 41, Buffer.from('{"max_tokens":12}')),
    )
    await client.waitFor(({ type, stream }) => type === frameTypes.headers && stream === 41)
    expect(await usedBy(gateway, '127.0.0.1')).toBe(12)
    await eventually('no byte is held', async () => expect(await heldBytes(gateway)).toBe(0))
    client.socket.destroy()
  })

  test('no request over HTTP/2 caused an exception', async () => {
    const { body } = await send(gateway.adminPort, 'GET', '/metrics')
    expect(parseExposition(body).value('sluice_uncaught_errors_total', { place: 'request' })).toBe(0)
    expect(parseExposition(body).value('sluice_uncaught_errors_total', { place: 'process' })).toBe(0)
  })
})

test('a WebSocket handshake has no body, and counts as one that says no number', async () => {
  const backend = await startBackend(answer)
  const gateway = await startHosted({ UPSTREAM_URL: backend.url, CONFIG_FILE: configFile() })
  const from = newClient()
  const client = await talk(gateway.port, from)
  client.write(
    'GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n' +
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  )
  await eventually('the answer has come', () => expect(client.received()).toMatch(/^HTTP\/1.1 200 /))
  expect(await usedBy(gateway, from)).toBe(70)
  client.socket.destroy()
})

async function heldBytes(gateway: HostedGateway): Promise<number> {
  const { body } = await send(gateway.adminPort, 'GET', '/metrics')
  return parseExposition(body).value('sluice_table_entries', { table: 'held-bodies' })
}

type Talk = {
  readonly socket: Socket
  write(bytes: string): void
  received(): string
  readonly closed: Promise<unknown>
}

function talk(port: number, from: string): Promise<Talk> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, localAddress: from, noDelay: true })
    let received = ''
    socket.on('data', (chunk) => (received += chunk.toString('latin1')))
    socket.on('error', () => undefined)
    const closed = new Promise((over) => socket.once('close', over))
    socket.once('connect', () =>
      resolve({
        socket,
        closed,
        received: () => received,
        write: (bytes) => void socket.write(bytes, 'latin1'),
      }),
    )
  })
}
