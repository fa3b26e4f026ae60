import { writeFileSync } from 'node:fs'
import { request as httpRequest, type RequestListener } from 'node:http'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { startHttp2Backend } from '../support/http/http2-backend.ts'
import { send, type Reply } from '../support/gateway/gateway.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { CLOSED_PORT } from '../support/network/ports.ts'
import { connectHttp2, sendHttp2 } from '../support/http/http2.ts'
import { freshRedis } from '../support/redis/redis.ts'
import { makeTemporaryDirectory, writeConfigFile } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

const from = '127.0.0.9'

/** Where the counters are, and how many gateways share them. */
const places = ['memory', 'workers', 'Redis'] as const

async function startGateways(place: (typeof places)[number], limits: string, answer: RequestListener) {
  const backend = await startBackend(answer)
  const file = join(makeTemporaryDirectory(), 'sluice.yaml')
  writeFileSync(file, `limits:\n${limits}`)
  const env = {
    UPSTREAM_URL: backend.url,
    CONFIG_FILE: file,
    ...(place === 'workers' && { WORKERS: '2' }),
    ...(place === 'Redis' && { REDIS_URL: await freshRedis() }),
  }
  const gateways = await Promise.all(
    Array.from({ length: place === 'Redis' ? 3 : 1 }, () => startHosted(env)),
  )
  const [first] = gateways
  if (!first) throw new RangeError('at least one gateway')
  return { gateways, first }
}

async function usedBy(gateway: HostedGateway, policy: string): Promise<unknown> {
  const { body } = await askOperator(gateway, 'POST', '/api/clients/inspect', {
    policy,
    client: { ip: from },
  })
  return (body as { states: { used: number }[] }).states[0]?.used
}

/** Each test has a rule and a path of its own. */
const limitsOfEach = `
  - { name: login, match: POST /login, requests: 5, window: 15m, countStatus: [401, 403] }
  - name: tokens
    match: POST /chat
    requests: 1000
    window: 15m
    cost: { reserve: 100, settle: "header:X-Cost", hide: true }
  - name: hidden
    match: POST /hidden
    requests: 1000
    window: 15m
    cost: { settle: "header:X-Cost", hide: true }
  - name: trailed
    match: POST /trailed
    requests: 1000
    window: 15m
    cost: { reserve: 100, settle: "header:X-Cost" }
  - { name: search, match: "GET /search", requests: 12, window: 15m, cost: 5 }
  - name: metered
    match: POST /metered
    algorithm: token-bucket
    requests: 10
    window: 1m
    cost: { settle: "header:X-Cost" }
  - { name: sign-in, match: "POST /sign-in", requests: 1, window: 15m, countStatus: [401] }
  - { name: export, match: "GET /export", concurrency: 2 }
  - { name: abandoned, match: "GET /abandoned", concurrency: 1 }
`

describe.each(places)('counted in %s', (place) => {
  let gateways: HostedGateway[]
  let first: HostedGateway
  const answers = new Map<string | undefined, RequestListener>()

  beforeAll(async () => {
    ;({ gateways, first } = await startGateways(place, limitsOfEach, (request, response) =>
      answers.get(request.url)?.(request, response),
    ))
  })

  test('an operator learns that less is left than the next request costs', async () => {
    answers.set('/search', (_request, response) => void response.end())
    const question = { method: 'GET', target: '/search', ip: from }
    for (const [status, left] of [
      [200, 7],
      [200, 2],
      [429, 2],
    ] as const) {
      const exceeded = status === 429
      const { body } = await askOperator(first, 'POST', '/api/clients/inspect', {
        policy: 'search',
        client: { ip: from },
      })
      expect(body).toMatchObject({ states: [{ exceeded }] })
      expect((await askOperator(first, 'POST', '/api/explain', question)).body).toMatchObject({
        refusedBy: exceeded ? 'search' : null,
        rules: expect.arrayContaining([
          expect.objectContaining({ name: 'search', states: [expect.objectContaining({ exceeded })] }),
        ]) as unknown,
      })
      const reply = await first.send('GET', '/search', { from })
      expect(reply.status).toBe(status)
      expect(reply.headers['ratelimit']).toMatch(new RegExp(`"search";r=${left};`))
    }
  })

  test('a response that overdraws a bucket tells when the next request passes', async () => {
    answers.set('/metered', (request, response) => {
      response.writeHead(200, { 'x-cost': request.headers['x-cost'] }).end()
    })
    const ask = (cost: string) => first.send('POST', '/metered', { from, headers: { 'x-cost': cost } })
    expect((await ask('6')).headers['ratelimit']).toBe('"metered";r=4;t=6')
    await eventually('the first request is settled', async () =>
      expect(await usedBy(first, 'metered')).toBe(6),
    )
    // Sixteen units are used, and a unit takes six seconds: seven have to come back.
    expect((await ask('10')).headers['ratelimit']).toMatch(/^"metered";r=0;t=4[12]$/)
    await eventually('the second request is settled', async () =>
      expect(await usedBy(first, 'metered')).toBe(10),
    )
    const { status, headers } = await ask('1')
    expect(status).toBe(429)
    expect(headers['retry-after']).toMatch(/^4[012]$/)
  })

  test('five of 200 parallel wrong passwords reach the backend; right ones all do', async () => {
    let wrong = 0
    answers.set('/login', (request, response) => {
      const isRight = request.headers['x-password'] === 'right'
      if (!isRight) wrong += 1
      response.writeHead(isRight ? 200 : 401).end()
    })
    const login = (password: string, index = 0) =>
      (gateways[index % gateways.length] ?? first).send('POST', '/login', {
        from,
        headers: { 'x-password': password },
      })
    for (let attempt = 0; attempt < 30; attempt++) {
      const { status, headers } = await login('right', attempt)
      expect(status).toBe(200)
      // The header has the state after settlement. Other processes learn of it a moment later.
      expect(headers['ratelimit']).toMatch(place === 'memory' ? /^"login";r=5;t=/ : /^"login";r=\d;t=/)
      if (place !== 'memory')
        await eventually('everything is given back', async () => expect(await usedBy(first, 'login')).toBe(0))
    }
    const replies = await Promise.all(Array.from({ length: 200 }, (_, index) => login('wrong', index)))
    expect(wrong).toBe(5)
    expect(replies.filter(({ status }) => status === 401)).toHaveLength(5)
    expect((await login('right')).status).toBe(429)
  })

  test('a client that passes after a refund is not among those over the limit any more', async () => {
    const held: (() => void)[] = []
    answers.set('/sign-in', (_request, response) => void held.push(() => response.end()))
    const signIn = () => first.send('POST', '/sign-in', { from })
    const limited = async (): Promise<unknown> =>
      (await askOperator(first, 'GET', '/api/clients/limited?policy=sign-in')).body
    const one = signIn()
    await eventually('the backend has the request', () => held.length === 1)
    expect((await signIn()).status).toBe(429)
    expect(await limited()).toMatchObject({ clients: [{ refusals: 1 }] })
    answers.set('/sign-in', (_request, response) => void response.end())
    held[0]?.()
    expect((await one).status).toBe(200)
    await eventually('the client is not listed', async () => {
      // Of several workers each has to see one.
      await signIn()
      expect(await limited()).toMatchObject({ clients: [] })
    })
  })

  test('a cost that a header says is settled, and the header hidden', async () => {
    answers.set('/chat', (request, response) => {
      const cost = request.headers['x-cost-to-say']
      response.writeHead(200, cost === undefined ? {} : { 'X-Cost': cost }).end('ok')
    })
    const chat = (cost: string) => first.send('POST', '/chat', { from, headers: { 'x-cost-to-say': cost } })
    const { headers } = await chat('40')
    expect(headers).not.toHaveProperty('x-cost')
    expect(headers['ratelimit']).toMatch(/^"tokens";r=960;t=/)
    await eventually('the used units are charged', async () => expect(await usedBy(first, 'tokens')).toBe(40))
    // A value that is not a number counts as the reserved units.
    for (const cost of ['-5', 'NaN', '1e3', '']) await chat(cost)
    await eventually('the used units are charged', async () =>
      expect(await usedBy(first, 'tokens')).toBe(440),
    )
    // A cost above the remaining quota uses it up.
    await chat('999999999999')
    await eventually('the quota is used up', async () => expect((await chat('1')).status).toBe(429))
    const { body } = await send(first.adminPort, 'GET', '/metrics')
    expect(body).toMatch(/sluice_unreadable_costs_total\{[^}]*policy="tokens"[^}]*\} 4/)
  })

  test('the header of a cost is hidden in the trailers, too', async () => {
    answers.set('/hidden', (_request, response) => {
      response.writeHead(200, { trailer: 'X-Cost, X-Other', 'X-Cost': '1' })
      response.write('ok')
      response.addTrailers({ 'X-Cost': '40', 'X-Other': 'seen' })
      response.end()
    })
    const { port } = first
    const headers = { te: 'trailers', connection: 'te, close' }
    const trailers = await new Promise((resolve, reject) => {
      httpRequest({ port, method: 'POST', path: '/hidden', localAddress: from, headers }, (response) => {
        response.resume().once('end', () => resolve(response.trailers))
      })
        .once('error', reject)
        .end()
    })
    expect(trailers).toEqual({ 'x-other': 'seen' })
  })

  test('a cost that a trailer says is settled, whether or not the client accepts trailers', async () => {
    answers.set('/trailed', (_request, response) => {
      response.writeHead(200, { trailer: 'X-Cost' })
      response.write('ok')
      response.addTrailers({ 'X-Cost': '40' })
      response.end()
    })
    const { headers } = await first.send('POST', '/trailed', { from })
    // The head was sent before the cost was known.
    expect(headers['ratelimit']).toMatch(/^"trailed";r=900;t=/)
    await eventually('the used units are charged', async () =>
      expect(await usedBy(first, 'trailed')).toBe(40),
    )
  })

  test('requests in flight: no more than two exports at a time', async () => {
    const held: (() => void)[] = []
    answers.set('/export', (_request, response) => void held.push(() => response.end('done')))
    const statuses: number[] = []
    const asked = Array.from({ length: 20 }, async (_, index) => {
      const { status, headers } = await (gateways[index % gateways.length] ?? first).send('GET', '/export', {
        from,
      })
      statuses.push(status)
      if (status === 429) expect(headers).toMatchObject({ 'retry-after': '1', ratelimit: '"export";r=0' })
    })
    await eventually('eighteen are refused', () => expect(statuses).toHaveLength(18))
    await eventually('two are in flight', () => expect(held).toHaveLength(2))
    for (const end of held.splice(0)) end()
    await Promise.all(asked)
    await eventually('a place is free', async () => {
      const replies: Reply[] = []
      const more = first.send('GET', '/export', { from })
      void more.then((reply) => replies.push(reply))
      await eventually('it is in flight or refused', () => held.length + replies.length === 1)
      held.splice(0).forEach((end) => end())
      expect((await more).status).toBe(200)
    })
  })

  test('a client that leaves does not leave its request in flight', async () => {
    let arrived = 0
    answers.set('/abandoned', () => void (arrived += 1))
    for (let round = 1; round <= 5; round++) {
      const leaving = await eventually('a request passes', async () => {
        const before = arrived
        const socket = open(first.port)
        const pieces: Buffer[] = []
        socket.once('data', (piece: Buffer) => pieces.push(piece))
        await eventually('it is in flight or refused', () => arrived > before || pieces.length > 0)
        if (pieces.length > 0) {
          socket.resetAndDestroy()
          throw new Error('refused')
        }
        return socket
      })
      // A half-closed connection would mean only that no more requests follow, and the gateway would still wait for the response.
      leaving.resetAndDestroy()
    }
  })
})

test('the header of a cost is hidden although the request is not counted: over a limit that refuses nothing, without Redis', async () => {
  const rule = (name: string, more: string): string =>
    `  - { name: ${name}, match: GET /${name}, requests: 1, window: 15m, ${more}, cost: { settle: "header:X-Cost", hide: true } }\n`
  const backend = await startBackend((_request, response) => response.setHeader('X-Cost', '1').end())
  const file = writeConfigFile(
    `upstream: ${backend.url}\nroutes: [{ name: other, upstream: ${backend.url}, onlyOver: true }]\nlimits:\n` +
      rule('shadow', 'mode: shadow') +
      rule('routed', 'over: { route: other }') +
      rule('open', 'onStoreError: open'),
  )
  for (const [path, env] of [
    ['/shadow', {}],
    ['/routed', {}],
    ['/open', { REDIS_URL: `redis://127.0.0.1:${CLOSED_PORT}` }],
  ] as const) {
    const gateway = await startHosted({ CONFIG_FILE: file, ...env })
    for (let i = 0; i < 3; i++) {
      const { status, headers } = await gateway.send('GET', path)
      expect([path, status, headers['x-cost']]).toEqual([path, 200, undefined])
    }
  }
})

test('a cost in the trailers of a gRPC response is settled', async () => {
  const backend = await startHttp2Backend((stream) => {
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0', 'x-cost': '7' }))
    stream.resume().end(Buffer.alloc(5))
  })
  const file = join(makeTemporaryDirectory(), 'sluice.yaml')
  writeFileSync(
    file,
    'limits: [{ name: calls, match: "* /*", requests: 100, window: 15m, cost: { reserve: 50, settle: "header:x-cost" } }]\n',
  )
  const gateway = await startHosted({ UPSTREAM_URL: backend.url, CONFIG_FILE: file })
  const session = connectHttp2(gateway.port, { cleartext: true, localAddress: from })
  const call = { ':method': 'POST', ':path': '/a.B/C', 'content-type': 'application/grpc', te: 'trailers' }
  expect((await sendHttp2(session, call, Buffer.alloc(5).toString())).status).toBe(200)
  await eventually('the used units are charged', async () => expect(await usedBy(gateway, 'calls')).toBe(7))
  session.close()
})

test('a streamed answer is passed on event by event, and settled by its last usage', async () => {
  let sendNext: () => void = () => undefined
  const { first } = await startGateways(
    'memory',
    '  - name: tokens\n    match: POST /chat\n    requests: 10000\n    window: 15m\n' +
      '    cost: { reserve: 2000, settle: "json:usage.total_tokens" }\n',
    (request, response) => {
      if (request.headers.accept === 'application/json') {
        response.setHeader('Content-Type', 'application/json')
        response.end(JSON.stringify({ usage: { total_tokens: 55 }, text: 'x'.repeat(5000) }))
        return
      }
      response.writeHead(200, { 'Content-Type': 'text/event-stream' })
      let event = 0
      sendNext = () => {
        event += 1
        const usage = event % 10 === 0 ? { total_tokens: event * 2 } : null
        if (event <= 100) response.write(`data: ${JSON.stringify({ event, usage })}\n\n`)
        else response.end('data: [DONE]\n\n')
      }
      sendNext()
    },
  )
  // Each event is sent only when the one before it has arrived.
  const nextEvent = () => sendNext()
  await stream(first.port, nextEvent)
  await eventually('the estimate is charged', async () => expect(await usedBy(first, 'tokens')).toBe(200))
  await first.send('POST', '/chat', { from, headers: { accept: 'application/json' } })
  await eventually('the used units are charged', async () => expect(await usedBy(first, 'tokens')).toBe(255))
  // A client that hangs up pays the reserved units, although the stream has reported 80 by then.
  await stream(first.port, nextEvent, 45)
  await eventually('the reserve is charged', async () =>
    expect(await usedBy(first, 'tokens')).toBe(255 + 2000),
  )
})

test('a client cannot choose a response whose cost cannot be read', async () => {
  const seen: (string | undefined)[] = []
  const { first } = await startGateways(
    'memory',
    '  - name: tokens\n    match: POST /chat\n    requests: 1000\n    window: 15m\n' +
      '    cost: { reserve: 2, settle: "json:n" }\n',
    (request, response) => {
      seen.push(request.headers['accept-encoding'], request.headers.range)
      response.setHeader('Content-Type', 'application/json')
      response.end('{"n":90}')
    },
  )
  const headers = { 'accept-encoding': 'gzip', range: 'bytes=0-1' }
  await first.send('POST', '/chat', { from, headers })
  await first.send('POST', '/other', { from, headers })
  expect(seen).toEqual(['identity', undefined, 'gzip', 'bytes=0-1'])
  await eventually('the used units are charged', async () => expect(await usedBy(first, 'tokens')).toBe(90))
})

test('a request is refunded if its client disconnects before a connection to the backend is free', async () => {
  const limits = `
  - { name: login, match: POST /login, requests: 50, window: 15m, countStatus: [401] }
  - { name: tokens, match: POST /login, requests: 1000, window: 15m, cost: { reserve: 100, else: estimate, settle: "json:n" } }
upstreamConnections: 1
`
  const held: (() => void)[] = []
  const { first } = await startGateways('memory', limits, (_request, response) => {
    held.push(() => response.end())
  })
  const before = first.send('GET', '/', { from })
  await eventually('the only connection is in use', () => expect(held).toHaveLength(1))
  const waiting = connect({ host: '127.0.0.1', port: first.port, localAddress: from })
  waiting.write('POST /login HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc')
  await eventually('it is reserved', async () => expect(await usedBy(first, 'login')).toBe(1))
  waiting.resetAndDestroy()
  await eventually('it is refunded', async () =>
    expect([await usedBy(first, 'login'), await usedBy(first, 'tokens')]).toEqual([0, 0]),
  )
  for (const end of held) end()
  await before
  expect(held).toHaveLength(1)
})

test('a request that the backend has seen is not refunded when its retry fails', async () => {
  const { gateway, guesses } = await startAtBreakingBackend()
  // The first request opens the connection that closes under the second: the backend has then read the second, and accepts no new
  // connection.
  await gateway.send('GET', '/login', { from })
  expect((await gateway.send('GET', '/login', { from })).status).toBe(502)
  expect(guesses()).toBe(2)
  await eventually('one failed login is charged', async () => expect(await usedBy(gateway, 'login')).toBe(1))
})

/** A backend that answers once with 200, then reads a request and exits, so that no new connection can be opened. */
async function startAtBreakingBackend(): Promise<{ gateway: HostedGateway; guesses: () => number }> {
  let guesses = 0
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.on('data', () => {
      guesses += 1
      if (guesses === 1) {
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
        return
      }
      server.close()
      socket.resetAndDestroy()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('no port')
  const file = join(makeTemporaryDirectory(), 'sluice.yaml')
  writeFileSync(
    file,
    'limits: [{ name: login, match: "* /login", requests: 5, window: 15m, countStatus: [401] }]\n',
  )
  const gateway = await startHosted({ UPSTREAM_URL: `http://127.0.0.1:${address.port}`, CONFIG_FILE: file })
  return { gateway, guesses: () => guesses }
}

function open(port: number): Socket {
  const socket = connect({ host: '127.0.0.1', port, localAddress: from })
  socket.on('error', () => undefined)
  socket.write('GET /abandoned HTTP/1.1\r\nHost: a\r\n\r\n')
  return socket
}

/** Reads an event stream, and calls `onEvent` after each event. Resolves at its end, or hangs up after `most` events. */
function stream(port: number, onEvent: () => void, most = Infinity): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({
      host: '127.0.0.1',
      port,
      method: 'POST',
      path: '/chat',
      localAddress: from,
      agent: false,
    })
    let received = ''
    let events = 0
    request.on('response', (response) => {
      response.on('data', (piece: Buffer) => {
        received += piece.toString()
        const complete = received.split('\n\n').length - 1
        while (events < complete) {
          events += 1
          if (events >= most) {
            request.destroy()
            resolve()
            return
          }
          onEvent()
        }
      })
      response.on('end', resolve)
    })
    request.on('error', (error) => (events >= most ? resolve() : reject(error)))
    request.end()
  })
}
