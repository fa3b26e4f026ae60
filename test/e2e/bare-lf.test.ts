import { afterAll, beforeAll, expect, test } from 'vitest'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { converse, freshAddress } from '../support/http/raw-client.ts'
import { startRecordingBackend, type RecordingBackend } from '../support/http/recording-backend.ts'

let backend: RecordingBackend
let strict: HostedGateway
let lenient: HostedGateway

beforeAll(async () => {
  backend = await startRecordingBackend()
  strict = await startHosted({ UPSTREAM_URL: backend.url })
  lenient = await startHosted({ UPSTREAM_URL: backend.url, UPSTREAM_BARE_LF: '1' })
})

afterAll(() => backend.close())

const get = (target: string): string => `GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`

test('heads with LF for CRLF are passed on, with CRLF, where that is set', async () => {
  backend.answer('/lf', { pieces: ['HTTP/1.1 200 OK\nX-A: b\nContent-Length: 2\n\nhi'], then: 'keep' })
  const from = freshAddress()
  const { responses } = await converse(lenient.port, [get('/lf') + get('/after')], { from, responses: 2 })
  expect(responses.map(({ status, body }) => ({ status, body }))).toEqual([
    { status: 200, body: 'hi' },
    { status: 200, body: 'GET /after' },
  ])
  expect(responses[0]?.head).toContain('\r\nx-a: b\r\n')
  const refused = await converse(strict.port, [get('/lf')], { from, responses: 1 })
  expect(refused.responses[0]?.status).toBe(502)
})

test('who writes LF through the backend into a head writes no answer to somebody else’s request', async () => {
  const injected = 'HTTP/1.1 200 OK\nX-A: b\nContent-Length: 0\n\nHTTP/1.1 200 OK\nContent-Length: 4\n\nevil'
  backend.answer('/injected', { pieces: [injected], then: 'keep' })
  const from = freshAddress()
  const { responses } = await converse(lenient.port, [get('/injected') + get('/next')], {
    from,
    responses: 2,
  })
  expect(responses.map(({ body }) => body)).toEqual(['', 'GET /next'])
})
