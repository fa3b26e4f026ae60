import { createHmac } from 'node:crypto'
import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import { createLog, type Log } from '../../../shared/log.ts'
import { signedHeaders, webhookKey } from '../../../proxy/telemetry/webhooks/signature.ts'
import { createWebhooks } from '../../../proxy/telemetry/webhooks/webhooks.ts'
import type { Webhook, WebhookEvent } from '../../../proxy/telemetry/webhooks/webhook-event.ts'
import { CLOSED_PORT } from '../../support/network/ports.ts'
import { startWebhookReceiver } from '../../support/http/webhook-receiver.ts'
import { eventually } from '../../support/wait/eventually.ts'

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'

function keyOf(text: string): Buffer {
  const key = webhookKey(text)
  if (!key) throw new Error(`no secret: ${text}`)
  return key
}

/** Retries only after an hour: for tests that are not about retries. */
const never = [3_600_000]

function start(
  webhooks: readonly Webhook[],
  options: {
    readonly retryAfterMs?: readonly number[]
    readonly capacity?: number
    readonly timeoutMs?: number
    readonly log?: Log
  } = {},
) {
  return createWebhooks(webhooks, {
    key: keyOf(secret),
    userAgent: 'sluice/1.2.3',
    host: 'gateway-1',
    timeoutMs: 5_000,
    retryAfterMs: never,
    capacity: 10,
    wallNow: Date.now,
    random: () => 0.5,
    log: createLog('gateway', 'silent'),
    ...options,
  })
}

const opened: WebhookEvent = { type: 'breaker', state: 'open' }
const closed: WebhookEvent = { type: 'breaker', state: 'closed' }
const ban = (client: string): WebhookEvent => ({
  type: 'ban',
  by: 'rule',
  policy: 'login',
  client,
  forSeconds: 60,
})

describe('the signature', () => {
  test('the signature is the one of the specification, for its example', () => {
    const body = '{"test": 2432232314}'
    const id = 'msg_p5jXN8AQM9LWM0D4loKWxJek'
    expect(signedHeaders(keyOf(secret), id, 1_614_265_330_999, body)).toEqual({
      'webhook-id': id,
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    })
  })

  test.each([
    ['', false],
    ['whsec_', false],
    ['MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', false],
    [`whsec_${Buffer.alloc(23, 1).toString('base64')}`, false],
    [`whsec_${Buffer.alloc(24, 1).toString('base64')}`, true],
    [`whsec_${Buffer.alloc(32, 1).toString('base64')}`, true],
    [`whsec_${Buffer.alloc(32, 1).toString('base64').replace('=', '')}`, true],
    [`whsec_${Buffer.alloc(65, 1).toString('base64')}`, false],
    [`whsec_${'!'.repeat(40)}`, false],
  ])('a secret of the form %j is taken: %s', (text, isTaken) => {
    expect(webhookKey(text) !== undefined).toBe(isTaken)
  })
})

test('a receiver gets only the events it has asked for, signed', async () => {
  const receiver = await startWebhookReceiver()
  const other = await startWebhookReceiver()
  const webhooks = start([
    { url: `${receiver.url}/hook?token=1`, events: ['ban', 'reload-failed'] },
    { url: other.url, events: ['breaker'] },
  ])
  webhooks.notify(ban('192.0.2.7'))
  webhooks.notify(opened)
  await eventually('both receivers have one event', () => {
    expect(receiver.received).toHaveLength(1)
    expect(other.received).toHaveLength(1)
  })
  const [first] = receiver.received
  if (!first) throw new Error('nothing was received')
  const { path, headers, body, event } = first
  expect(path).toBe('/hook?token=1')
  expect(event).toEqual({
    type: 'ban',
    timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT/) as string,
    data: { by: 'rule', policy: 'login', client: '192.0.2.7', forSeconds: 60, host: 'gateway-1' },
  })
  expect(headers).toMatchObject({ 'content-type': 'application/json', 'user-agent': 'sluice/1.2.3' })
  const signed = `${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.${body}`
  const signature = createHmac('sha256', keyOf(secret)).update(signed).digest('base64')
  expect(headers['webhook-signature']).toBe(`v1,${signature}`)
  expect(other.received[0]?.event.type).toBe('breaker')
  await webhooks.close()
})

test('a receiver that fails is asked again with the same id, until it takes the message, and then gets the next', async () => {
  const receiver = await startWebhookReceiver((response, before) =>
    response.writeHead(before < 2 ? 500 : 200).end('no'),
  )
  const webhooks = start([{ url: receiver.url, events: ['breaker'] }], { retryAfterMs: [1, 1, 1] })
  webhooks.notify(opened)
  webhooks.notify(closed)
  await eventually('all attempts have come', () => expect(receiver.received).toHaveLength(4))
  expect(receiver.received.map(({ event }) => event.data['state'])).toEqual([
    'open',
    'open',
    'open',
    'closed',
  ])
  const ids = receiver.received.map(({ headers }) => headers['webhook-id'])
  expect(new Set(ids.slice(0, 3)).size).toBe(1)
  expect(ids[3]).not.toBe(ids[0])
  await webhooks.close()
})

test('a message is dropped after its last attempt, and the next one has attempts of its own', async () => {
  const receiver = await startWebhookReceiver((response) => response.writeHead(503).end())
  const webhooks = start([{ url: receiver.url, events: ['breaker'] }], { retryAfterMs: [1, 1] })
  webhooks.notify(opened)
  webhooks.notify(closed)
  await eventually('all attempts have come', () => expect(receiver.received).toHaveLength(6))
  await webhooks.close()
  expect(receiver.received).toHaveLength(6)
})

test('a redirect is a failure, and is not followed', async () => {
  const elsewhere = await startWebhookReceiver()
  const receiver = await startWebhookReceiver((response) =>
    response.writeHead(307, { location: elsewhere.url }).end(),
  )
  const webhooks = start([{ url: receiver.url, events: ['breaker'] }], { retryAfterMs: [1] })
  webhooks.notify(opened)
  await eventually('both attempts have come', () => expect(receiver.received).toHaveLength(2))
  await webhooks.close()
  expect(elsewhere.received).toEqual([])
})

test('a receiver that does not answer in time counts as failed', async () => {
  const receiver = await startWebhookReceiver((response, before) => before > 0 && response.end())
  // On a busy machine an attempt may time out before it reaches the receiver, which also counts as a failure.
  const retryAfterMs = Array.from({ length: 100 }, () => 1)
  const webhooks = start([{ url: receiver.url, events: ['breaker'] }], { retryAfterMs, timeoutMs: 100 })
  webhooks.notify(opened)
  await eventually('one attempt after another has come', () =>
    expect(receiver.received.length).toBeGreaterThan(1),
  )
  await webhooks.close()
})

test('an unavailable or slow receiver does not delay others, and its backlog is bounded', async () => {
  const receiver = await startWebhookReceiver()
  const slow = await startWebhookReceiver(() => undefined)
  const events = ['ban'] as const
  const webhooks = start([
    { url: `http://127.0.0.1:${CLOSED_PORT}`, events },
    { url: slow.url, events },
    { url: receiver.url, events },
  ])
  for (let client = 0; client < 5; client++) webhooks.notify(ban(String(client)))
  await eventually('five events have come', () => expect(receiver.received).toHaveLength(5))
  for (let client = 5; client < 1_000; client++) webhooks.notify(ban(String(client)))
  const { size, capacity, evictions } = webhooks.readUse()
  expect(capacity).toBe(30)
  expect(size).toBeLessThanOrEqual(30)
  expect(evictions).toBeGreaterThan(2 * 900)
  await eventually('the last event has come', () =>
    expect(receiver.received.at(-1)?.event.data['client']).toBe('999'),
  )
  // One message is in flight to the slow receiver, and further messages are not sent with it.
  expect(slow.received).toHaveLength(1)
})

// A message that has failed before is retried once more; one in flight that fails is not.
test.each([
  ['waits to be tried again', ['open', 'open', 'closed']],
  ['is on its way', ['open', 'closed']],
])('shutdown sends each message that %s, and does not retry failures', async (when, states) => {
  let answer = (): unknown => undefined
  const receiver = await startWebhookReceiver((response, before) => {
    const end = (): unknown => response.writeHead(before === 0 ? 500 : 200).end()
    if (before === 0) answer = end
    else end()
  })
  const lines: string[] = []
  const log = pino({ level: 'debug' }, { write: (line: string) => void lines.push(line) })
  const webhooks = start([{ url: receiver.url, events: ['breaker'] }], { log })
  webhooks.notify(opened)
  webhooks.notify(closed)
  await eventually('the first attempt has come', () => expect(receiver.received).toHaveLength(1))
  let ended: Promise<void>
  if (when === 'is on its way') {
    ended = webhooks.close()
    answer()
  } else {
    answer()
    await eventually('it has failed', () => expect(lines.join('')).toContain('retrying'))
    ended = webhooks.close()
  }
  await ended
  expect(receiver.received.map(({ event }) => event.data['state'])).toEqual(states)
  webhooks.notify(opened)
  expect(webhooks.readUse().size).toBe(0)
})

test('shutdown does not wait for a receiver that does not answer', async () => {
  const silent = await startWebhookReceiver(() => undefined)
  const webhooks = start([{ url: silent.url, events: ['breaker'] }], { timeoutMs: 600_000 })
  webhooks.notify(opened)
  await eventually('the receiver has been asked', () => expect(silent.received).toHaveLength(1))
  await webhooks.close()
})
