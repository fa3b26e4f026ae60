import { expect, test } from 'vitest'
import { loadTable } from '../../../support/random/random-requests.ts'
import { Settlement } from '../../../../proxy/limits/costs/settlement.ts'
import type { Reservation } from '../../../../proxy/limits/limiter.ts'

const reserved = 100
const event = (value: object): string => `data: ${JSON.stringify(value)}\n\n`

type Response = {
  readonly status?: number
  readonly fields?: readonly string[]
  readonly framing?: 'none' | 'chunked' | 'until-close' | 'length'
  readonly body?: string
  readonly trailers?: readonly string[]
  /** Whether the client disconnected before the end. */
  readonly isCut?: boolean
  /** Whether there was no response at all. */
  readonly isUnanswered?: boolean
}

/** The charge of a request, and the reason if it is not the cost that the response states. */
function charge(
  cost: object,
  {
    status = 200,
    fields = [],
    framing = 'length',
    body = '',
    trailers,
    isCut = false,
    isUnanswered = false,
  }: Response,
) {
  const limits = [
    { name: 'a', match: 'POST /a', requests: 10_000, window: '1m', cost: { reserve: reserved, ...cost } },
  ]
  const policy = loadTable({ limits })?.rules[0]?.policy
  if (!policy) throw new Error('the table is wrong')
  const reservation: Reservation = {
    charge: { policy, partitionKey: 'a' },
    units: reserved,
    isLocal: true,
    ticket: 1,
  }
  const settled: number[] = []
  const reasons: string[] = []
  const settlement = new Settlement(
    {
      limiter: { settle: (_, units) => void settled.push(units) },
      limitHeaders: () => [],
      onUnread: (_, reason) => void reasons.push(reason),
      requestBytes: () => 300,
      request: { method: 'POST', headers: {} },
    },
    [{ policy, reservation, remaining: 0, resetMs: 0 } as never],
  )
  if (!isUnanswered) settlement.onHead({ status, fields: [...fields], framing: { kind: framing } } as never)
  for (let at = 0; at < body.length; at += 7) settlement.onBody(Buffer.from(body.slice(at, at + 7)))
  if (trailers && !isCut) settlement.onTrailers(trailers)
  if (!isCut && !isUnanswered) settlement.onEnd()
  settlement.finish()
  expect(settled).toHaveLength(1)
  return { units: settled[0], reason: reasons[0] }
}

const json = ['content-type', 'application/json']
const events = ['content-type', 'text/event-stream']
const inHeader = { settle: 'header:x-cost' }
const headerOrMember = { settle: ['header:x-cost', 'json:n'] }
const openai = { settle: ['json:usage.total_tokens', 'json:response.usage.total_tokens'] }
const anthropic = {
  settle: {
    sum: [['json:usage.input_tokens', 'json:message.usage.input_tokens'], 'json:usage.output_tokens'],
  },
}
const started = event({ type: 'message_start', message: { usage: { input_tokens: 25, output_tokens: 1 } } })
const ended = event({ type: 'message_delta', usage: { output_tokens: 15 } })
const word = event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello' } })
const estimate = { ...openai, else: 'estimate' }
const text = (units: string): string =>
  JSON.stringify({ usage: { total_tokens: units }, x: 'x'.repeat(2963) })

test.each<[string, object, Response, number, string?]>([
  ['the first of a list', openai, { fields: json, body: '{"usage":{"total_tokens":7}}' }, 7],
  [
    'the second of a list',
    openai,
    { fields: events, body: event({ response: { usage: { total_tokens: 8 } } }) },
    8,
  ],
  ['none of a list', openai, { fields: json, body: '{}' }, reserved, 'missing'],
  [
    'the sum of a document',
    anthropic,
    { fields: json, body: '{"usage":{"input_tokens":3,"output_tokens":4}}' },
    7,
  ],
  ['the sum over events', anthropic, { fields: events, body: started + ended }, 40],
  ['a sum of which one is missing', anthropic, { fields: events, body: ended }, 15],
  [
    'a header before the body',
    { settle: ['header:x-cost', 'json:n'] },
    { fields: [...json, 'x-cost', '5'], body: '{"n":6}' },
    5,
  ],
  [
    'a header that is missing, before the body',
    { settle: ['header:x-cost', 'json:n'] },
    { fields: json, body: '{"n":6}' },
    6,
  ],
  [
    'a header after the body',
    { settle: ['json:n', 'header:x-cost'] },
    { fields: [...json, 'x-cost', '5'], body: '{"m":6}' },
    5,
  ],
  [
    'a header and a member together',
    { settle: { sum: ['json:n', 'header:x-cost'] } },
    { fields: [...json, 'x-cost', '5'], body: '{"n":6}' },
    11,
  ],
  ['a header', inHeader, { fields: ['x-cost', '5'] }, 5],
  ['no header', inHeader, {}, reserved, 'missing'],
  ['a trailer', inHeader, { framing: 'chunked', body: 'x', trailers: ['x-cost', '5'] }, 5],
  ['a trailer over HTTP/2', inHeader, { framing: 'until-close', trailers: ['x-cost', '5'] }, 5],
  [
    'a header, and not a trailer of its name',
    inHeader,
    { framing: 'chunked', fields: ['x-cost', '3'], trailers: ['x-cost', '5'] },
    3,
  ],
  [
    'no such trailer',
    inHeader,
    { framing: 'chunked', body: 'x', trailers: ['x-other', '5'] },
    reserved,
    'missing',
  ],
  [
    'a response that is cut before its trailers',
    inHeader,
    { framing: 'chunked', body: 'x', trailers: ['x-cost', '5'], isCut: true },
    reserved,
    'cut',
  ],
  [
    'a header and a trailer together',
    { settle: { sum: ['header:x-in', 'header:x-out'] } },
    { framing: 'chunked', fields: ['x-in', '3'], trailers: ['x-out', '4'] },
    7,
  ],
  [
    'a trailer after a body that is not JSON',
    headerOrMember,
    { framing: 'until-close', fields: ['content-type', 'application/grpc'], trailers: ['x-cost', '5'] },
    5,
  ],
  [
    'neither a trailer nor a body that is JSON',
    headerOrMember,
    { framing: 'until-close', fields: ['content-type', 'application/grpc'] },
    reserved,
    'type',
  ],
  [
    'a member of the body without a trailer before it in the list',
    headerOrMember,
    { framing: 'chunked', fields: json, body: '{"n":6}', trailers: ['x-other', '5'] },
    6,
  ],
  [
    'a trailer, and no estimate',
    { ...inHeader, else: 'estimate' },
    { framing: 'chunked', body: 'x'.repeat(3000), trailers: ['x-cost', '5'] },
    5,
  ],
  ['more than the quota', openai, { fields: json, body: '{"usage":{"total_tokens":1e9}}' }, 10_000],
  ['no number', openai, { fields: json, body: text('7') }, reserved, 'missing'],
  ['no number, estimated', estimate, { fields: json, body: text('7') }, 1100, 'missing'],
  [
    'another type, estimated',
    estimate,
    { fields: ['content-type', 'text/plain'], body: text('7') },
    1100,
    'type',
  ],
  [
    'a compressed body, estimated',
    estimate,
    { fields: [...json, 'content-encoding', 'br'], body: text('7') },
    3100,
    'encoding',
  ],
  ['a short body, estimated', estimate, { fields: json, body: '{}' }, 101, 'missing'],
  ['an error, not estimated', estimate, { status: 500, fields: json, body: text('7') }, reserved, 'status'],
  [
    'a stream that is cut and has said less than was reserved',
    openai,
    { fields: events, body: event({ usage: { total_tokens: 9 } }) + word, isCut: true },
    reserved,
    'cut',
  ],
  [
    'a stream that is cut and has said more than was reserved',
    openai,
    { fields: events, body: event({ usage: { total_tokens: 999 } }) + word, isCut: true },
    999,
    'cut',
  ],
  [
    'a stream that is cut after its first usage of several',
    anthropic,
    { fields: events, body: started, isCut: true },
    reserved,
    'cut',
  ],
  [
    'a stream that is cut in the event after its usage',
    openai,
    { fields: events, body: event({ usage: { total_tokens: 9 } }) + 'data: {"choices"', isCut: true },
    reserved,
    'cut',
  ],
  [
    'a stream that is cut after the event that ends it',
    openai,
    { fields: events, body: event({ usage: { total_tokens: 9 } }) + 'data: [DONE]\n\n', isCut: true },
    9,
  ],
  [
    'a stream that is cut after its usage, estimated',
    estimate,
    { fields: events, body: event({ usage: { total_tokens: 9 } }) + 'data: [DONE]\n\n', isCut: true },
    9,
  ],
  [
    'a stream that is cut after its usage and more text, estimated',
    estimate,
    { fields: events, body: event({ usage: { total_tokens: 9 } }) + word, isCut: true },
    123,
    'cut',
  ],
  [
    'a stream that is cut in the middle of an event after its usage, estimated',
    estimate,
    { fields: events, body: event({ usage: { total_tokens: 9 } }) + word.trimEnd(), isCut: true },
    101,
    'cut',
  ],
  [
    'a stream that is cut and has said more',
    estimate,
    { fields: events, body: event({ usage: { total_tokens: 999 } }) + word, isCut: true },
    999,
    'cut',
  ],
  [
    'a document that is cut',
    openai,
    { fields: json, body: '{"usage":{"total_tokens":9}', isCut: true },
    reserved,
    'cut',
  ],
  [
    'a document that is cut and has said more',
    openai,
    { fields: json, body: '{"usage":{"total_tokens":999},', isCut: true },
    999,
    'cut',
  ],
  [
    'a 304, which has neither a body nor its type',
    openai,
    { status: 304, framing: 'none' },
    reserved,
    'missing',
  ],
  ['a response to HEAD', openai, { fields: json, framing: 'none' }, reserved, 'missing'],
  ['a response to HEAD over HTTP/2', openai, { fields: json, framing: 'length' }, reserved, 'missing'],
  ['a 304, estimated', estimate, { status: 304, framing: 'none' }, reserved, 'missing'],
  [
    'a document that is not whole',
    openai,
    { fields: json, body: '{"usage":{"total_tokens":9}' },
    reserved,
    'json',
  ],
])('a settlement charges the right units for %s', (_, cost, response, units, reason) => {
  expect(charge(cost, response)).toEqual({ units, reason })
})

test.each([
  ['the reserve', openai, reserved],
  ['an estimate', estimate, 100],
])('a request without a response costs %s, and its cost is reported as unread', (_, cost, units) => {
  expect(charge(cost, { isUnanswered: true })).toEqual({ units, reason: 'cut' })
})
