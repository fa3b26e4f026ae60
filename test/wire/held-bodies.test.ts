import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { DEVICE_SECRET, tableOfEveryKind } from '../support/gateway/every-kind.ts'
import { startGateway, type GatewayProcess } from '../support/gateway/gateway.ts'
import { parseExposition } from '../support/metrics/prometheus.ts'
import { converse, freshAddress, type WayOfSending } from '../support/http/raw-client.ts'
import { seededRandom } from '../support/random/seeded-random.ts'
import { startRecordingBackend, type RecordingBackend } from '../support/http/recording-backend.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'
import { runVector, type Outcome } from './run-vector.ts'
import { chunked, request, type Vector } from './vector.ts'
import { vectorsByTheme } from './vectors.ts'

// If a rule reads the units to reserve from a request, the gateway holds the request's body back before it forwards the request. Other
// kinds of rules read bodies and cookies, or change responses. None of that may change what the backend or the client sees, no matter what
// the bytes are: all vectors must have the same outcome.

/** Byte by byte only in the long tests, as it takes ten times as long. */
const ways: WayOfSending[] = process.env['PROPERTY_RUNS'] === 'all' ? ['whole', 'byte by byte'] : ['whole']
const parallel = 32

let backend: RecordingBackend
let gateway: GatewayProcess

beforeAll(async () => {
  backend = await startRecordingBackend()
  gateway = await startWith('test/wire/held.yaml')
})

function startWith(CONFIG_FILE: string): Promise<GatewayProcess> {
  return startGateway({
    UPSTREAM_URL: backend.url,
    CONFIG_FILE,
    DEVICE_SECRET,
    // Sending single bytes takes long on a busy machine.
    HEADERS_TIMEOUT: '1m',
    BODY_TIMEOUT: '1m',
  })
}

afterAll(() => backend.close())

test.each([
  ['a rule that reserves by the body', false],
  ['rules of every kind', true],
] as const)('with %s every vector has the outcome of a plain rule', async (_, everyKind) => {
  const serving = everyKind ? await startWith(writeConfigFile(tableOfEveryKind())) : gateway
  const seenBefore = backend.requests.length
  const runs = Object.values(vectorsByTheme).flatMap((vectors) =>
    vectors
      // These rules count by cookies, so `Connection` does not remove them: see test/wire/named-by-connection.test.ts.
      .filter(({ name }) => !everyKind || name !== 'a cookie that is named')
      .flatMap((vector) => ways.map((way) => ({ vector, way }))),
  )
  const wrong: unknown[] = []
  const lane = async (): Promise<void> => {
    for (let run = runs.pop(); run; run = runs.pop()) {
      const { vector, way } = run
      const outcome = await runVector(serving.port, backend, vector, way, seededRandom(1))
      if (!isAsTold(outcome, vector)) wrong.push({ name: vector.name, way, verdict: vector.verdict, outcome })
    }
  }
  await Promise.all(Array.from({ length: parallel }, lane))
  expect(wrong).toEqual([])
  expect(backend.faults()).toEqual([])
  expect(backend.requests.length - seenBefore).toBeGreaterThan(500)
  const metrics = parseExposition(
    await fetch(`http://127.0.0.1:${serving.adminPort}/metrics`).then((r) => r.text()),
  )
  expect(metrics.value('sluice_uncaught_errors_total', { place: 'process' })).toBe(0)
  expect(metrics.value('sluice_uncaught_errors_total', { place: 'request' })).toBe(0)
  expect(metrics.value('sluice_table_entries', { table: 'held-bodies' })).toBe(0)
})

function isAsTold(outcome: Outcome, { verdict, interim = [], sees = {}, says = '' }: Vector): boolean {
  const { statuses, backend: seen, unfinished } = verdict
  return (
    same(outcome.statuses, statuses) &&
    same(outcome.backend, seen) &&
    same(outcome.interim, interim) &&
    same(outcome.sees, sees) &&
    outcome.rest === '' &&
    outcome.says.includes(says) &&
    outcome.unfinished.every((begun) => begun === unfinished)
  )
}

function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}

describe('a body that is held arrives with a length where all of it has come, else framed as the client did', () => {
  const json = `{"n":5,"text":"${'ü'.repeat(900)}"}`
  const text = Buffer.from(json).toString('latin1')
  const long = 'x'.repeat(200_000)
  const chunk = (content: string): string => `${content.length.toString(16)}\r\n${content}\r\n`

  test.each([
    ['a length', request('POST /a', `Content-Length: ${text.length}`) + text, text],
    ['chunks', chunked('/a', chunk(text.slice(0, 100)) + chunk(text.slice(100)) + '0\r\n\r\n'), text],
    ['chunks with nothing in them', chunked('/a', '0\r\n\r\n'), ''],
    [
      'a length above the limit of held bodies',
      request('POST /a', `Content-Length: ${long.length}`) + long,
      long,
    ],
    [
      'chunks above the limit of held bodies',
      chunked('/a', chunk(long.slice(0, 70_000)) + chunk(long.slice(70_000)) + '0\r\n\r\n'),
      long,
    ],
    [
      'exactly as much as is read',
      request('POST /a', 'Content-Length: 65536') + long.slice(0, 65_536),
      long.slice(0, 65_536),
    ],
  ])('%s', async (name, bytes, body) => {
    const from = freshAddress()
    const pieces = bytes.match(/[^]{1,3000}/g) ?? []
    const again = request('GET /again', 'Connection: close')
    const { responses, rest } = await converse(gateway.port, pieces, { from, responses: 1, then: again })
    expect(responses.map(({ status }) => status)).toEqual([200, 200])
    expect(rest).toBe('')
    const [seen] = backend.requestsFrom(from)
    expect(seen).toMatchObject({ method: 'POST', body, complete: true })
    const framing = name.startsWith('chunks above')
      ? /\r\ntransfer-encoding: chunked$/i
      : /\r\ncontent-length: \d+$/i
    expect(seen?.head).toMatch(framing)
  })
})
