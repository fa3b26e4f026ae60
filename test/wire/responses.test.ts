import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startGateway, type GatewayProcess } from '../support/gateway/gateway.ts'
import { parseExposition } from '../support/metrics/prometheus.ts'
import {
  converse,
  freshAddress,
  waysOfSending,
  type Conversation,
  type WayOfSending,
} from '../support/http/raw-client.ts'
import { seededRandom } from '../support/random/seeded-random.ts'
import { startRecordingBackend, type RecordingBackend } from '../support/http/recording-backend.ts'
import { readHere } from '../support/random/response-readings.ts'
import type { AnswerVector } from './answer.ts'
import { bodies } from './answers/bodies.ts'
import { heads } from './answers/heads.ts'
import { testSeed } from '../support/random/seed.ts'

// The attack: a backend that is broken, or through which an attacker writes. Its bytes must never become a truncated response that a client
// takes for complete, nor the response to another client's request.

const seed = testSeed()
const vectorsByTheme = { heads, bodies }
const versions = ['1.1', '1.0'] as const
const ways = Object.keys(waysOfSending) as WayOfSending[]

let backend: RecordingBackend
let gateway: GatewayProcess

beforeAll(async () => {
  console.log(`random pieces with TEST_SEED=${seed}`)
  backend = await startRecordingBackend()
  gateway = await startGateway({ UPSTREAM_URL: backend.url })
})

afterAll(() => backend.close())

let vectors = 0

/** Requests the vector's response and then, if the connection stays open, the usual response on the same connection. */
function ask(vector: AnswerVector, way: WayOfSending, version: string): Promise<Conversation> {
  const { method = 'GET', bytes, then, verdict } = vector
  const target = `/${++vectors}`
  backend.answer(target, { pieces: withSurplus(waysOfSending[way](bytes, seededRandom(seed)), method), then })
  const from = freshAddress()
  return converse(gateway.port, [`${method} ${target} HTTP/${version}\r\nHost: a\r\n\r\n`], {
    from,
    responses: 1,
    then: verdict === 'broken' || version === '1.0' ? undefined : probe,
    toHead: method === 'HEAD',
  })
}

/**
 * Joins the bytes after the end of the response to its last piece. If they arrived later, another request might already be waiting on the
 * connection for its own response.
 */
function withSurplus(pieces: readonly string[], method: string): readonly string[] {
  // Endless responses have no end, and looking for it after each byte would take seconds.
  if (pieces.length > 1_000) return pieces
  const { endedIn } = readHere(
    pieces.map((piece) => Buffer.from(piece, 'latin1')),
    method,
    false,
  )
  if (endedIn === undefined) return pieces
  return [...pieces.slice(0, endedIn), pieces.slice(endedIn).join('')]
}

const probe = 'GET /probe HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'

describe.each(Object.entries(vectorsByTheme))('%s', (_, table) => {
  test.concurrent.each(table.map((vector) => [vector.name, vector] as const))('%s', async (__, vector) => {
    const { verdict, why, rfc, hasLength } = vector
    for (const version of versions) {
      for (const way of ways) {
        const about = `${way}, to HTTP/${version}: ${why} (${rfc})`
        const { responses, rest, ended, interim } = await ask(vector, way, version)
        if (verdict === 'broken') {
          expect(responses, about).toEqual([])
          if (version === '1.0') expect(ended, about).toBe(hasLength ? 'closed' : 'reset')
          continue
        }
        const [response, afterwards, ...others] = responses
        expect(response, about).toMatchObject(verdict)
        const head = `${response?.head ?? ''}\r\n`.toLowerCase()
        for (const text of vector.says ?? []) expect(head, about).toContain(text.toLowerCase())
        for (const text of vector.lacks ?? []) expect(head, about).not.toContain(text)
        if (version === '1.0') expect(head, about).not.toContain('transfer-encoding')
        expect(interim, about).toEqual(version === '1.0' ? [] : (vector.interim ?? []))
        if (afterwards) expect(afterwards.body, about).toBe('GET /probe')
        expect({ rest, others }, about).toEqual({ rest: '', others: [] })
      }
    }
  })
})

test('the process still runs, and has caught no exception', async () => {
  expect(gateway.process.child.exitCode).toBeNull()
  const reply = await fetch(`http://127.0.0.1:${gateway.adminPort}/metrics`)
  const metrics = parseExposition(await reply.text())
  expect(metrics.value('sluice_uncaught_errors_total', { place: 'process' })).toBe(0)
  expect(metrics.value('sluice_uncaught_errors_total', { place: 'request' })).toBe(0)
})
