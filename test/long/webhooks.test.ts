import { writeFileSync } from 'node:fs'
import { beforeAll, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { send } from '../support/gateway/gateway.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { parseExposition } from '../support/metrics/prometheus.ts'
import { freshRedis, startRedisServer } from '../support/redis/redis.ts'
import { startRelay } from '../support/network/relay.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'
import {
  startWebhookReceiver,
  type ReceivedWebhook,
  type WebhookReceiver,
} from '../support/http/webhook-receiver.ts'
import { eventually } from '../support/wait/eventually.ts'

let upstream = ''

beforeAll(async () => {
  const backend = await startBackend((_, response) => response.end('ok'))
  upstream = backend.url
})

const tableFor = ({ url }: WebhookReceiver): string => `
webhooks: [{ url: '${url}', events: [ban, breaker, reload-failed] }]
limits:
  - { name: login, match: POST /login, requests: 1, window: 1h, ban: { after: 2, for: 1h } }
  - { name: keyed, match: GET /keyed, key: 'header:x-api-key', requests: 1, window: 1h, ban: { after: 1, for: 1m } }
  - { name: other, match: GET /other, requests: 10000, window: 1h }
`

async function start(
  receiver: WebhookReceiver,
  env: Record<string, string> = {},
): Promise<HostedGateway & { readonly file: string }> {
  const file = writeConfigFile(tableFor(receiver))
  const gateway = await startHosted({
    UPSTREAM_URL: upstream,
    CONFIG_FILE: file,
    WEBHOOK_SECRET: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    ...env,
  })
  return { ...gateway, file }
}

/** The received events, once there are `count` of them. */
async function eventsOf(receiver: WebhookReceiver, count: number): Promise<ReceivedWebhook['event'][]> {
  await eventually(`${count} events have come`, () =>
    expect(receiver.received.length).toBeGreaterThanOrEqual(count),
  )
  return receiver.received.map(({ event }) => event)
}

/** Sends requests of one client until it is banned, and a few more after that. */
async function getBanned(...gateways: readonly HostedGateway[]): Promise<void> {
  for (let round = 0; round < 6; round++)
    await Promise.all(gateways.map((gateway) => gateway.send('POST', '/login')))
}

test('a ban by a rule is reported once, and so is one by an operator', async () => {
  const receiver = await startWebhookReceiver()
  const gateway = await start(receiver)
  await getBanned(gateway)
  const [first] = await eventsOf(receiver, 1)
  expect(first).toMatchObject({
    type: 'ban',
    data: { by: 'rule', policy: 'login', client: '127.0.0.1', forSeconds: 3600, times: 1 },
  })
  const ban = { client: { ip: '192.0.2.7' }, for: '5m', reason: 'scraping' }
  expect((await askOperator(gateway, 'POST', '/api/clients/ban', ban)).status).toBe(200)
  const [, second, ...others] = await eventsOf(receiver, 2)
  expect(second).toMatchObject({
    data: { by: 'operator', client: '192.0.2.7', forSeconds: 300, reason: 'scraping' },
  })
  expect(others).toEqual([])
  const scrape = parseExposition((await send(gateway.adminPort, 'GET', '/metrics')).body)
  expect(scrape.value('sluice_table_capacity', { table: 'webhooks' })).toBe(1000)
})

test('webhooks never contain a secret key, nor an address without LOG_ADDRESSES', async () => {
  const receiver = await startWebhookReceiver()
  const gateway = await start(receiver, { LOG_ADDRESSES: '0' })
  for (let i = 0; i < 3; i++) await gateway.send('GET', '/keyed', { headers: { 'x-api-key': 's3cr3t' } })
  const [keyed] = await eventsOf(receiver, 1)
  expect(keyed?.data['client']).toMatch(/^h:/)
  await getBanned(gateway)
  const [, login] = await eventsOf(receiver, 2)
  expect(login?.data).toMatchObject({ policy: 'login' })
  expect(login?.data).not.toHaveProperty('client')
  const bodies = receiver.received.map(({ body }) => body).join('\n')
  expect(bodies).not.toContain('s3cr3t')
  expect(bodies).not.toContain('127.0.0.1')
})

test('invalid settings are reported with their mistakes', async () => {
  const receiver = await startWebhookReceiver()
  const gateway = await start(receiver)
  writeFileSync(gateway.file, 'limits: none\n')
  expect((await askOperator(gateway, 'POST', '/api/reload', {})).status).toBe(422)
  const [event] = await eventsOf(receiver, 1)
  expect(event?.type).toBe('reload-failed')
  expect(JSON.stringify(event?.data['mistakes'])).toContain('limits: got \\"none\\"')
})

test('a change of the webhooks needs a restart, and the log says so', async () => {
  const receiver = await startWebhookReceiver()
  const gateway = await start(receiver)
  writeFileSync(gateway.file, tableFor({ ...receiver, url: `${receiver.url}/elsewhere` }))
  const { body } = await askOperator(gateway, 'POST', '/api/reload', {})
  expect(body).toMatchObject({ restart: ['webhooks'] })
})

test('of two replicas on one Redis, only the one that made the ban reports it', async () => {
  const receiver = await startWebhookReceiver()
  const REDIS_URL = await freshRedis()
  const replicas = [await start(receiver, { REDIS_URL }), await start(receiver, { REDIS_URL })]
  await getBanned(...replicas)
  await eventsOf(receiver, 1)
  // Later events go through the same queue, so once they have arrived, no second ban event can follow.
  writeFileSync(replicas[0]?.file ?? '', 'limits: none\n')
  writeFileSync(replicas[1]?.file ?? '', 'limits: none\n')
  for (const replica of replicas) await askOperator(replica, 'POST', '/api/reload', {})
  const events = await eventsOf(receiver, 3)
  expect(events.filter(({ type }) => type === 'ban')).toHaveLength(1)
})

test.each(['1', '2'])(
  'with %s worker(s) an outage of Redis, its end and a ban are each reported once',
  async (workers) => {
    const receiver = await startWebhookReceiver()
    const redis = await startRedisServer()
    const relay = await startRelay(Number(new URL(redis.url).port))
    const gateway = await start(receiver, {
      REDIS_URL: `redis://127.0.0.1:${relay.port}`,
      WORKERS: workers,
      STORE_TIMEOUT: '200ms',
    })
    await getBanned(gateway)
    const [ban] = await eventsOf(receiver, 1)
    expect(ban?.type).toBe('ban')
    const breaker = (): unknown[] =>
      receiver.received.flatMap(({ event: { type, data } }) => (type === 'breaker' ? [data['state']] : []))
    await relay.set({ kind: 'refuse' })
    await eventually('the breakers of all workers are open', async () => {
      // Each worker has its own breaker, so requests must reach all of them.
      await Promise.all(Array.from({ length: 10 }, () => gateway.send('GET', '/other')))
      expect(breaker()).toEqual(['open'])
    })
    await relay.set({ kind: 'none' })
    await eventually('the breaker is closed again', () =>
      expect(breaker().slice(0, 2)).toEqual(['open', 'closed']),
    )
    expect(receiver.received.filter(({ event }) => event.type === 'ban')).toHaveLength(1)
  },
)

test('with workers and no Redis a ban is reported once', async () => {
  const receiver = await startWebhookReceiver()
  const gateway = await start(receiver, { WORKERS: '2' })
  await getBanned(gateway, gateway)
  const [event] = await eventsOf(receiver, 1)
  expect(event?.data).toMatchObject({ policy: 'login', client: '127.0.0.1' })
  writeFileSync(gateway.file, 'limits: none\n')
  expect((await askOperator(gateway, 'POST', '/api/reload', {})).status).toBe(422)
  const events = await eventsOf(receiver, 2)
  expect(events.map(({ type }) => type)).toEqual(['ban', 'reload-failed'])
})
