import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { resolvingWith, startDnsServer } from '../support/network/dns-server.ts'
import { startOtlpCollector } from '../support/http/otlp-collector.ts'
import { spawnNode } from '../support/gateway/process.ts'
import { freshRedis } from '../support/redis/redis.ts'
import { startWebhookReceiver } from '../support/http/webhook-receiver.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

/** The same URL with a name that only the test's name server knows. */
function named(url: string, name: string): string {
  return url.replace('127.0.0.1', name)
}

function writeConfig(lines: readonly string[]): string {
  const cwd = makeTemporaryDirectory()
  writeFileSync(join(cwd, 'sluice.yaml'), lines.join('\n'))
  return cwd
}

const webhookSecret = `whsec_${Buffer.alloc(32, 1).toString('base64')}`

test.concurrent('all host names that the gateway connects to share one lookup, including those of libraries', async () => {
  const dns = await startDnsServer(['127.0.0.1'], 1)
  const [backend, issuer, collector, receiver] = await Promise.all([
    startBackend(),
    startBackend((_, response) => response.end('{"keys":[{"kty":"oct"}]}')),
    startOtlpCollector(),
    startWebhookReceiver(),
  ])
  const cwd = writeConfig([
    `jwt: { jwksUrl: '${named(issuer.url, 'issuer.test')}', issuer: i, audience: a }`,
    `webhooks: [{ url: '${named(receiver.url, 'receiver.test')}', events: [reload-failed] }]`,
    'limits: [{ name: by-user, match: GET /, key: jwt:sub, requests: 1, window: 1m }]',
  ])
  const gateway = spawnNode(
    'proxy/main.ts',
    {
      PORT: '0',
      ADMIN_PORT: '0',
      HOST: '127.0.0.1',
      UPSTREAM_URL: named(backend.url, 'backend.test'),
      REDIS_URL: named(await freshRedis(), 'redis.test'),
      OTEL_EXPORTER_OTLP_ENDPOINT: named(collector.url, 'collector.test'),
      WEBHOOK_SECRET: webhookSecret,
      ...resolvingWith(dns),
    },
    [],
    { cwd },
  )
  const [, port] = await gateway.waitForLine(/"port":(\d+).*"msg":"listening"/)
  await gateway.waitForLine(/connected to Redis/)
  expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe('ok')
  writeFileSync(join(cwd, 'sluice.yaml'), 'limits: wrong')
  gateway.child.kill('SIGHUP')
  await eventually('the webhook has come', () => expect(receiver.received.length).toBeGreaterThan(0))
  await eventually('the span has come', () => expect(collector.spans.length).toBeGreaterThan(0))
  expect(issuer.seen.length).toBeGreaterThan(0)
  expect(await gateway.stop()).toBe(0)
})

test.concurrent('an address that was given before is used while the name server is silent, and no name keeps the process from ending', async () => {
  const dns = await startDnsServer(['127.0.0.1'], 1)
  const backend = await startBackend((_, response) => response.setHeader('connection', 'close').end('ok'))
  const cwd = writeConfig([
    'trustedProxies: [dead1.test, dead2.test]',
    'limits: []',
    'routes:',
    `  - { name: named, paths: [/named/*], upstream: '${named(backend.url, 'backend.test')}' }`,
    `  - { name: hosted, paths: [/hosted/*], upstream: '${named(backend.url, 'localhost')}' }`,
    `  - { name: addressed, paths: [/addressed/*], upstream: '${backend.url}' }`,
    `  - { name: dead, paths: [/dead/*], upstream: 'http://dead3.test', health: { path: /, every: 1s } }`,
  ])
  const gateway = spawnNode('proxy/main.ts', { PORT: '0', ADMIN_PORT: '0', ...resolvingWith(dns) }, [], {
    cwd,
  })
  const [, port] = await gateway.waitForLine(/"port":(\d+).*"msg":"listening"/)
  const ask = async (path: string): Promise<number> => (await fetch(`http://127.0.0.1:${port}${path}`)).status
  expect(await ask('/named/')).toBe(200)
  dns.addresses = undefined
  const before = dns.asked()
  const dead = [1, 2, 3, 4].map(() => ask('/dead/').catch(() => 0))
  // The TTL is a second. The earlier answer has expired, and new queries get no answer.
  await eventually('the name is asked for again', () => expect(dns.asked() - before).toBeGreaterThan(3))
  const paths = ['/named/', '/hosted/', '/addressed/']
  const statuses = await Promise.all(Array.from({ length: 30 }, (_, i) => ask(paths[i % 3] ?? '')))
  expect(statuses).toEqual(statuses.map(() => 200))
  expect(dead).toHaveLength(4)
  gateway.child.kill('SIGTERM')
  expect(await gateway.exit).toBe(0)
})
