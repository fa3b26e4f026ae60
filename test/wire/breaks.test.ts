import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startGateway, type GatewayProcess } from '../support/gateway/gateway.ts'
import { parseExposition, type Exposition } from '../support/metrics/prometheus.ts'
import { converse, freshAddress } from '../support/http/raw-client.ts'
import { seededRandom } from '../support/random/seeded-random.ts'
import { startRecordingBackend, type RecordingBackend } from '../support/http/recording-backend.ts'
import { testSeed } from '../support/random/seed.ts'
import { eventually } from '../support/wait/eventually.ts'

// The attack, or just a bad network: a connection ends, or turns into noise, at any byte. No matter what the gateway has begun by then, the
// backend must not take an incomplete request for complete, nor the client an incomplete response, and no resource may be left over.

const seed = testSeed()
const random = seededRandom(seed)

let backend: RecordingBackend
let gateway: GatewayProcess

beforeAll(async () => {
  console.log(`noise with TEST_SEED=${seed}`)
  backend = await startRecordingBackend()
  gateway = await startGateway({ UPSTREAM_URL: backend.url })
})

afterAll(() => backend.close())

/** Calls `run` for each of the numbers below `count`, a few at a time. */
async function forEach(count: number, run: (n: number) => Promise<void>): Promise<void> {
  let next = 0
  const lanes = Array.from({ length: 24 }, async () => {
    while (next < count) await run(next++)
  })
  await Promise.all(lanes)
}

function sendAndReset(bytes: string, from: string): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port: gateway.port, localAddress: from, noDelay: true })
    socket.on('error', () => undefined)
    socket.on('close', () => resolve())
    socket.on('connect', () => {
      // Leaves time to read the bytes, or the gateway would see only the reset.
      socket.write(bytes, 'latin1', () => setTimeout(() => socket.resetAndDestroy(), 3))
    })
  })
}

describe('a client resets its connection at every byte of', () => {
  const head = (requestLine: string, ...lines: string[]): string =>
    [`${requestLine} HTTP/1.1`, 'Host: a', ...lines, '', ''].join('\r\n')
  const requests: [name: string, bytes: string][] = [
    ['content by length', head('POST /length', 'Content-Length: 30') + 'x'.repeat(30)],
    [
      'chunks and trailers',
      `${head('POST /chunks', 'Transfer-Encoding: chunked')}5;a=b\r\nhello\r\n3\r\nyou\r\n0\r\nX: y\r\n\r\n`,
    ],
    [
      'requests one after the other',
      head('GET /one') + head('POST /two', 'Content-Length: 2') + 'hi' + head('GET /three'),
    ],
    [
      'a handshake and later bytes',
      head(
        'GET /chat',
        'Connection: Upgrade',
        'Upgrade: websocket',
        'Sec-WebSocket-Version: 13',
        'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      ) + '\x81\x05hello',
    ],
  ]
  test.each(requests)('%s', async (_, bytes) => {
    await forEach(bytes.length + 1, async (n) => {
      const from = freshAddress()
      await sendAndReset(bytes.slice(0, n), from)
      const whole = backend.requestsFrom(from).filter(({ complete }) => complete)
      const possible = readRequests(bytes.slice(0, n))
      expect(possible, `after ${n} bytes`).toEqual(expect.arrayContaining(whole.map(({ target }) => target)))
    })
  })
})

describe('a backend ends at every byte of', () => {
  const byLength = (head: string, length: number) => (bytes: string) =>
    bytes.slice(head.length, head.length + length)
  const lengthHead = 'HTTP/1.1 200 OK\r\nX-A: b\r\nContent-Length: 20\r\n\r\n'
  const hintsHead =
    'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n'
  const chunkedHead = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
  const chunks = '5;a=b\r\nhello\r\n3\r\nyou\r\n0\r\nX: y\r\n\r\n'
  /** Each with a function that returns the body that a client may take for complete if the backend has sent `sent`. */
  const answers: [name: string, bytes: string, bodyOf: (sent: string) => string | undefined][] = [
    ['content by length', lengthHead + 'x'.repeat(20), byLength(lengthHead, 20)],
    ['hints before a response', `${hintsHead}hi`, byLength(hintsHead, 2)],
    [
      'chunks and trailers',
      chunkedHead + chunks,
      (sent) => (sent.startsWith(chunkedHead + chunks) ? 'helloyou' : undefined),
    ],
  ]
  const ends = ['reset', 'close', 'noise'] as const
  const cases = answers.flatMap((answer) => ends.map((end) => [answer[0], end, answer] as const))
  test.each(cases)('%s, by a %s', async (name, end, [, bytes, bodyOf]) => {
    await forEach(bytes.length + 1, async (n) => {
      const target = `/${name.replaceAll(' ', '-')}/${end}/${n}`
      const sent = bytes.slice(0, n) + (end === 'noise' ? randomBytes(40) : '')
      backend.answer(target, { pieces: [sent], then: end === 'noise' ? 'close' : end })
      const request = `GET ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`
      const seen = await converse(gateway.port, [request], { from: freshAddress(), responses: 1 })
      const about = `the backend sent ${JSON.stringify(sent)}`
      const [response, ...others] = seen.responses
      expect(others, about).toEqual([])
      if (!response) expect(seen.ended, about).not.toBe('open')
      else if (response.status === 502) expect(response.body, about).toContain('"code":502')
      else expect(response, about).toMatchObject({ status: 200, body: bodyOf(sent) })
    })
  })
})

test('no connection stays open, and the gateway has caught no exception', async () => {
  expect(gateway.process.child.exitCode).toBeNull()
  expect(backend.faults()).toEqual([])
  const readMetrics = async (): Promise<Exposition> => {
    const reply = await fetch(`http://127.0.0.1:${gateway.adminPort}/metrics`)
    return parseExposition(await reply.text())
  }
  // Handshakes that wait for their response, and lingering connections, take a moment to end.
  await eventually('no connection is open', async () => {
    const metrics = await readMetrics()
    expect([metrics.value('sluice_connections'), metrics.value('sluice_upgrades')]).toEqual([0, 0])
  })
  const metrics = await readMetrics()
  for (const place of ['process', 'request'])
    expect(metrics.value('sluice_uncaught_errors_total', { place })).toBe(0)
  expect((await gateway.send('GET', '/alive')).status).toBe(200)
})

/** The targets of the complete requests in these bytes, which are a prefix of well-formed requests. */
function readRequests(bytes: string): string[] {
  const targets: string[] = []
  let rest = bytes
  for (;;) {
    const headEnd = rest.indexOf('\r\n\r\n') + 4
    if (headEnd === 3) return targets
    const length = Number(/\r\nContent-Length: (\d+)/.exec(rest.slice(0, headEnd))?.[1] ?? 0)
    const isChunked = rest.slice(0, headEnd).includes('chunked')
    const end = isChunked ? rest.indexOf('\r\n\r\n', headEnd) + 4 : headEnd + length
    if (end > rest.length || (isChunked && end === 3)) return targets
    targets.push(rest.split(' ')[1] ?? '')
    rest = rest.slice(end)
  }
}

function randomBytes(count: number): string {
  return Array.from({ length: count }, () => String.fromCharCode(Math.floor(random() * 256))).join('')
}
