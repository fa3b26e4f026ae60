import { once } from 'node:events'
import { connect } from 'node:net'
import { constants } from 'node:http2'
import { expect, test } from 'vitest'
import { startBackend, type Backend } from '../support/http/backend.ts'
import { connectHttp2, sendHttp2 } from '../support/http/http2.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { startGateway } from '../support/gateway/gateway.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { freshRedis } from '../support/redis/redis.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

/** One request every 200 ms, and up to 15 that wait. */
const paced =
  '{ name: paced, match: ["* /paced", "* /paced/*"], algorithm: token-bucket, requests: 5, window: 1s, burst: 1'
const delaying = `${paced}, over: { delay: 3s, waiting: 1000 } }`
/** One request every 3 s, so slow that a test can observe requests that wait. */
const medium =
  '{ name: medium, match: "* /medium", algorithm: token-bucket, requests: 20, window: 1m, burst: 1, over: { delay: 10s } }'
/** One request every 20 s, so slow that the speed of the machine does not matter. */
const slow = '{ name: slow, match: "* /slow", algorithm: token-bucket, requests: 3, window: 1m, burst: 1'
const waiting = `${slow}, over: { delay: 60s, waiting: 1000 } }`

async function configFor(rules: readonly string[]): Promise<{ backend: Backend; file: string }> {
  const backend = await startBackend()
  const file = writeConfigFile(
    `upstream: ${backend.url}\nlimits:\n${rules.map((rule) => `  - ${rule}\n`).join('')}`,
  )
  return { backend, file }
}

async function start(
  rules: readonly string[],
  env: Record<string, string> = {},
): Promise<HostedGateway & { readonly backend: Backend }> {
  const { backend, file } = await configFor(rules)
  return { ...(await startHosted({ CONFIG_FILE: file, ...env })), backend }
}

async function waitingAt({ adminPort }: { readonly adminPort: number }): Promise<number> {
  const metrics = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text()
  return Number(/^sluice_table_entries\{table="waiting"\} (\d+)$/m.exec(metrics)?.[1])
}

const untilWaiting = (gateway: { readonly adminPort: number }, requests: number): Promise<unknown> =>
  eventually(`${requests} requests wait`, async () => (await waitingAt(gateway)) === requests)

test.each(['memory', 'Redis', 'two workers'])(
  'requests over the limit wait for their turn, in order: %s',
  async (store) => {
    const envs: Record<string, Record<string, string>> = {
      memory: {},
      Redis: { REDIS_URL: await freshRedis() },
      'two workers': { WORKERS: '2' },
    }
    const gateway = await start([delaying], envs[store])
    const startedMs = performance.now()
    const sent: Promise<{ status: number }>[] = []
    for (let i = 0; i < 6; i++) {
      sent.push(gateway.send('GET', `/paced/${i}`))
      // Makes the requests arrive in this order, no matter which worker gets them.
      if (i > 0)
        await eventually('it waits', async () => (await waitingAt(gateway)) + gateway.backend.seen.length > i)
      else await sent[0]
    }
    const replies = await Promise.all(sent)
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200])
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(1000)
    const seen = gateway.backend.seen.map(({ url }) => url)
    // A busy machine may let one process run after the other.
    if (store === 'two workers') seen.sort()
    expect(seen).toEqual([0, 1, 2, 3, 4, 5].map((i) => `/paced/${i}`))
    await untilWaiting(gateway, 0)
  },
)

test.each([
  ['alone', []],
  [
    'with a rule whose cost the response states',
    ['{ name: failed, match: "* /*", requests: 9, window: 1h, countStatus: [500] }'],
  ],
])('the response to a request that waited says how long it takes from then on: %s', async (_, others) => {
  const everySecond =
    '{ name: second, match: "* /*", algorithm: token-bucket, requests: 60, window: 1m, burst: 1'
  const gateway = await start([`${everySecond}, over: { delay: 30s } }`, ...others])
  const replies = await Promise.all([1, 2, 3].map(() => gateway.send('GET', '/')))
  for (const { headers } of replies) expect(headers['ratelimit']).toMatch(/^"second";r=0;t=1(?:,|$)/)
})

test('requests for which there is no time, or no place, are refused', async () => {
  const gateway = await start([
    waiting,
    waiting.replace('slow,', 'few,').replace('/slow', '/few').replace('1000', '2'),
  ])
  await gateway.send('GET', '/slow')
  const left = new AbortController()
  const send = (path: string) =>
    fetch(`http://127.0.0.1:${gateway.port}${path}`, { signal: left.signal }).then(
      ({ status, headers }) => [status, Number(headers.get('retry-after'))],
      () => 'left',
    )
  const replies = [send('/slow'), send('/slow'), send('/slow')]
  await untilWaiting(gateway, 3)
  const [status, retryAfter] = (await send('/slow')) as number[]
  expect(status).toBe(429)
  expect(retryAfter).toBeGreaterThan(0)
  expect(retryAfter).toBeLessThanOrEqual(20)
  await gateway.send('GET', '/few')
  const first = send('/few')
  await untilWaiting(gateway, 4)
  expect(await send('/few')).toEqual([429, expect.any(Number)])
  // The fourth turn is later than the delay. Under the other rule the delay would be enough, but the queue is full.
  const explain = async (target: string) =>
    (await askOperator(gateway, 'POST', '/api/explain', { method: 'GET', target })).body
  expect(await explain('/slow')).toMatchObject({
    refusedBy: 'slow',
    rules: [{ over: { delayMs: 60_000 } }, {}],
  })
  const full = { name: 'few', counts: true, waitingFull: true }
  expect(await explain('/few')).toMatchObject({ refusedBy: 'few', rules: [{}, full] })
  left.abort()
  expect(await Promise.all([...replies, first])).toEqual(['left', 'left', 'left', 'left'])
  await untilWaiting(gateway, 0)
  const { refusedBy, rules } = (await explain('/few')) as { refusedBy: unknown; rules: object[] }
  expect([refusedBy, rules.filter((rule) => 'waitingFull' in rule)]).toEqual([null, []])
})

test('requests of clients that have disconnected give their turns to those after them', async () => {
  const gateway = await start([waiting], { ACCESS_LOG: '1' })
  await gateway.send('GET', '/slow')
  for (let round = 0; round < 3; round++) {
    const sockets = [1, 2, 3].map(() => connect(gateway.port, '127.0.0.1'))
    for (const socket of sockets) socket.write('GET /slow HTTP/1.1\r\nHost: a\r\n\r\n')
    await untilWaiting(gateway, 3)
    for (const socket of sockets) socket.destroy()
    await untilWaiting(gateway, 0)
  }
  await gateway.waitForLine(/"path":"\/slow","status":0.*"delayedMs":\d+/)
  expect(gateway.backend.seen).toHaveLength(1)
})

test('a stream that is reset while it waits is forgotten, and its connection goes on', async () => {
  const gateway = await start([waiting])
  const session = connectHttp2(gateway.port, { cleartext: true })
  const get = (path: string) => session.request({ ':path': path, ':authority': 'a' })
  await once(get('/slow').resume().end(), 'end')
  const stream = get('/slow')
  stream.on('error', () => undefined)
  stream.end()
  await untilWaiting(gateway, 1)
  expect((await sendHttp2(session, { ':path': '/other', ':authority': 'a' })).status).toBe(200)
  stream.close(constants.NGHTTP2_CANCEL)
  await untilWaiting(gateway, 0)
  session.close()
})

// Concurrent, as these tests mostly wait three seconds for a turn.

test.concurrent('a body is not read while its request waits, and a slow client is not ended for it', async () => {
  // Shorter than the wait for the turn, and long enough to write a body on a busy machine.
  const gateway = await start([medium], {
    BODY_TIMEOUT: '1500ms',
    HEADERS_TIMEOUT: '1500ms',
    ACCESS_LOG: '1',
  })
  await gateway.send('GET', '/medium')
  const socket = connect(gateway.port, '127.0.0.1')
  socket.setEncoding('latin1')
  let received = ''
  socket.on('data', (text: string) => (received += text))
  socket.write('POST /medium HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n')
  await untilWaiting(gateway, 1)
  expect(received).toBe('')
  await eventually('it is asked for its body', () => received.startsWith('HTTP/1.1 100 '))
  expect(await waitingAt(gateway)).toBe(0)
  socket.write('body')
  await eventually('it is answered', () => received.includes('HTTP/1.1 200 '))
  socket.destroy()
  await gateway.waitForLine(/"method":"POST".*"delayedMs":\d{4}/)
  const metrics = await (await fetch(`http://127.0.0.1:${gateway.adminPort}/metrics`)).text()
  expect(metrics).toMatch(/^sluice_delay_seconds_count\{policy="medium"\} 1$/m)
})

test.concurrent('a gateway that stops lets waiting requests have their turn', async () => {
  const { backend, file } = await configFor([medium])
  const gateway = await startGateway({ CONFIG_FILE: file, SHUTDOWN_GRACE: '10s' })
  await gateway.send('GET', '/medium')
  const replies = [1, 2].map(() => gateway.send('GET', '/medium'))
  await untilWaiting(gateway, 2)
  const ended = gateway.process.stop()
  expect((await Promise.all(replies)).map(({ status }) => status)).toEqual([200, 200])
  expect(await ended).toBe(0)
  expect(backend.seen).toHaveLength(3)
})

test.concurrent('a request waits, and then goes where another rule sends it', async () => {
  const [app, page] = await Promise.all([startBackend(), startBackend((_, response) => response.end('page'))])
  const file = writeConfigFile(`upstream: ${app.url}
routes: [{ name: page, onlyOver: true, upstream: ${page.url} }]
limits:
  - ${medium}
  - { name: soft, match: GET /medium, requests: 1, window: 10m, over: { route: page } }
  - { name: hard, match: GET /medium, requests: 2, window: 10m }
`)
  const gateway = await startHosted({ CONFIG_FILE: file, ACCESS_LOG: '1' })
  const bodies = []
  for (let i = 0; i < 3; i++) {
    const { status, body } = await gateway.send('GET', '/medium')
    bodies.push(status === 200 ? body : status)
  }
  expect(bodies).toEqual(['ok', 'page', 429])
  await gateway.waitForLine(/"route":"page","routedBy":"soft","delayedMs":\d+/)
})

test('an auth request is answered when its turn has come', async () => {
  const gateway = await start([delaying], { DECISIONS_PORT: '0', TRUSTED_PROXIES: '127.0.0.0/8' })
  const ask = () =>
    fetch(`http://127.0.0.1:${gateway.decisionsPort}/forward-auth`, {
      headers: {
        'x-forwarded-method': 'GET',
        'x-forwarded-host': 'a',
        'x-forwarded-uri': '/paced',
        'x-forwarded-for': '192.0.2.1',
      },
    })
  const startedMs = performance.now()
  expect((await Promise.all([ask(), ask(), ask()])).map(({ status }) => status)).toEqual([200, 200, 200])
  expect(performance.now() - startedMs).toBeGreaterThanOrEqual(400)
})

test('without Redis the turns are kept in each process', async () => {
  const gateway = await start([delaying], { REDIS_URL: 'redis://127.0.0.1:1' })
  const startedMs = performance.now()
  const replies = await Promise.all([1, 2, 3].map(() => gateway.send('GET', '/paced')))
  expect(replies.map(({ status }) => status)).toEqual([200, 200, 200])
  expect(performance.now() - startedMs).toBeGreaterThanOrEqual(400)
})
