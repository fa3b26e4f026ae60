import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startGateway, type GatewayProcess } from '../support/gateway/gateway.ts'
import { converse, freshAddress } from '../support/http/raw-client.ts'
import { startRecordingBackend, type RecordingBackend } from '../support/http/recording-backend.ts'
import { readLlhttpCases, type LlhttpCase } from './llhttp-cases.ts'

/*
 * The cases of llhttp's own suite, as raw bytes. `PEER_SUITES` names a folder with a copy of nodejs/llhttp in `llhttp`. Requests that its
 * strict parser refuses must not reach the backend as complete, and responses that it refuses must not reach the client as complete.
 * Nothing may hang.
 */

const folder = join(process.env['PEER_SUITES'] ?? '', 'llhttp')
if (!existsSync(join(folder, 'test/request')))
  throw new Error(`PEER_SUITES=${process.env['PEER_SUITES'] ?? ''} has no llhttp/test/request`)

const requests = readLlhttpCases(folder, 'request')
const responses = readLlhttpCases(folder, 'response')

/** Responses that llhttp refuses and the gateway passes on. The gateway writes chunks anew, so no client reads the original ones. */
const readLeniently = new Set(['Trailing space on chunked body', 'No extension after semicolon'])

/** Adds `Host`, which most cases lack, so that they are not refused for that alone. */
function withHost(bytes: string): string {
  return /^host:/im.test(bytes) ? bytes : bytes.replace(/( HTTP\/1\.[01]\r\n)/, '$1Host: a.example\r\n')
}

let backend: RecordingBackend
let gateway: GatewayProcess

beforeAll(async () => {
  backend = await startRecordingBackend()
  gateway = await startGateway({
    UPSTREAM_URL: backend.url,
    // Short timeouts, so that inputs which wait for more bytes end soon.
    HEADERS_TIMEOUT: '500ms',
    BODY_TIMEOUT: '500ms',
    IDLE_TIMEOUT: '500ms',
    UPSTREAM_TIMEOUT: '500ms',
    UPSTREAM_IDLE_TIMEOUT: '500ms',
  })
})

afterAll(() => backend.close())

test('there are as many cases as a suite has', () => {
  expect(requests.length).toBeGreaterThan(80)
  expect(responses.length).toBeGreaterThan(40)
})

/** Sends the bytes and waits for the gateway to end the connection, as it must. */
function send(bytes: string, from: string) {
  return converse(gateway.port, [bytes], { from, responses: Number.POSITIVE_INFINITY })
}

describe('requests', () => {
  test.concurrent.each(requests.map((one) => [one.name, one] as const))(
    '%s',
    async (_, { bytes, complete, isRefused }) => {
      for (const sent of new Set([bytes, withHost(bytes)])) {
        const from = freshAddress()
        const { responses: answers } = await send(sent, from)
        const whole = backend.requestsFrom(from).filter((request) => request.complete)
        expect(whole.length).toBeLessThanOrEqual(complete)
        // The first unreadable message gets an error response, or the connection closes without a response.
        if (isRefused)
          expect(answers.filter(({ status }) => status < 400).length).toBeLessThanOrEqual(complete)
      }
    },
  )

  test('nothing was sent on that can be read in two ways', () => expect(backend.faults()).toEqual([]))
})

let targets = 0

describe('responses', () => {
  test.concurrent.each(responses.map((one) => [one.name, one] as const))(
    '%s',
    async (_, answer: LlhttpCase) => {
      for (const then of ['keep', 'close'] as const) {
        const target = `/answer-${++targets}`
        backend.answer(target, { pieces: [answer.bytes], then })
        const { responses: got, ended } = await send(
          `GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`,
          freshAddress(),
        )
        expect(ended).not.toBe('open')
        const [first, ...others] = got
        expect(others).toEqual([])
        const isPassedOn = first !== undefined && first.status !== 502 && first.status !== 504
        if (answer.isRefused && answer.complete === 0 && !readLeniently.has(answer.title))
          expect(isPassedOn, first?.head).toBe(false)
      }
    },
  )
})

test('the process has written only the expected lines', () => {
  expect(gateway.process.stderr()).toBe('')
  expect(gateway.process.stdout()).not.toContain('"level":"error"')
})
