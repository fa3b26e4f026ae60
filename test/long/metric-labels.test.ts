import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { send } from '../support/gateway/gateway.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { parseExposition } from '../support/metrics/prometheus.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'

const limits = `limits:
  - { name: by-address, match: '* /*', requests: 2, window: 1h }
  - { name: by-key, match: '* /keyed/*', key: 'header:x-api-key', requests: 1, window: 1h, ban: { after: 1, for: 1h } }
  - { name: shadow, match: '* /*', key: 'query:who', requests: 1, window: 1h, mode: shadow }
`
const CLIENTS = 100_000
const CONNECTIONS = 8
/** Requests in flight on one connection. */
const AT_ONCE = 50

/** Every series, by name and labels, as in Prometheus. */
async function seriesOf({ adminPort }: HostedGateway): Promise<{ series: string[]; bytes: number }> {
  const { body } = await send(adminPort, 'GET', '/metrics')
  const series = parseExposition(body)
    .samples.filter(({ name }) => !/nodejs_/.test(name))
    .map(({ name, labels }) => `${name} ${JSON.stringify(labels)}`)
  return { series: series.sort(), bytes: body.length }
}

/** Sends requests of clients with numbers from `first` on, each with its own address, host and path. */
function flood(port: number, first: number, count: number): Promise<void> {
  return new Promise((resolve, reject) => {
    let sent = 0
    let answered = 0
    let rest = ''
    const socket = connect(port, '127.0.0.1')
    const sendMore = (): void => {
      let text = ''
      for (; sent < count && sent - answered < AT_ONCE; sent++) text += requestOf(first + sent)
      if (text !== '') socket.write(text)
    }
    socket.setEncoding('latin1')
    socket.on('connect', sendMore)
    socket.on('error', reject)
    socket.on('close', () => reject(new Error(`closed after ${answered} responses`)))
    socket.on('data', (chunk: string) => {
      const parts = (rest + chunk).split('HTTP/1.1 ')
      answered += parts.length - 1
      rest = (rest + chunk).slice(-8)
      if (answered < count) return sendMore()
      socket.removeAllListeners('close')
      socket.destroy()
      resolve()
    })
  })
}

function requestOf(client: number): string {
  const address = `10.${client >> 16}.${(client >> 8) & 255}.${client & 255}`
  // Every second client reuses the key of the one before, and is refused and banned.
  const key = `key-${client - (client % 2)}`
  return `GET /keyed/${client}?who=${client} HTTP/1.1\r\nhost: ${client}.example\r\nx-forwarded-for: ${address}\r\nx-api-key: ${key}\r\n\r\n`
}

test('the series of a scrape are the same after 100,000 clients', async () => {
  const backend = await startBackend((_, response) => response.end())
  const gateway = await startHosted({
    UPSTREAM_URL: backend.url,
    CONFIG_FILE: writeConfigFile(limits),
    TRUSTED_PROXIES: '127.0.0.1',
    STORE_MAX_KEYS: '20000',
    LOG_LEVEL: 'error',
  })
  await flood(gateway.port, CLIENTS, 4)
  const before = await seriesOf(gateway)
  await Promise.all(
    Array.from({ length: CONNECTIONS }, (_, i) =>
      flood(gateway.port, (i * CLIENTS) / CONNECTIONS, CLIENTS / CONNECTIONS),
    ),
  )
  const after = await seriesOf(gateway)
  expect(after.series).toEqual(before.series)
  // Numbers may have more digits.
  expect(after.bytes).toBeLessThan(before.bytes * 1.2)
  const { body } = await send(gateway.adminPort, 'GET', '/metrics')
  const found = parseExposition(body)
  expect(found.value('sluice_requests_total', { class: '2xx' })).toBe(CLIENTS / 2 + 2)
  expect(found.value('sluice_requests_total', { class: '4xx' })).toBe(CLIENTS / 2 + 2)
})
