import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { startBackend, type Backend } from '../support/http/backend.ts'
import { send, sendRaw, startGateway, type GatewayProcess } from '../support/gateway/gateway.ts'
import { parseExposition } from '../support/metrics/prometheus.ts'

const request = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'

/** Opens a connection and sends a request. Resolves with the connection once the request is answered, or undefined if it is not. */
async function open(port: number, from: string): Promise<Socket | undefined> {
  const socket = connect({ host: '127.0.0.1', port, localAddress: from })
  socket.on('error', () => undefined)
  socket.write(request)
  const answered = await new Promise((resolve) => {
    socket.once('data', () => resolve(true))
    socket.once('close', () => resolve(false))
  })
  return answered ? socket : undefined
}

async function close(socket: Socket | undefined): Promise<void> {
  socket?.end()
  if (socket) await once(socket, 'close')
}

test('connections are limited per client and in total, and a closed one makes room for another', async () => {
  // All connections have a request in flight, as idle ones would be evicted.
  const backend = await startBackend((_, response) => response.write('some'))
  const gateway = await startGateway({
    UPSTREAM_URL: backend.url,
    MAX_CONNECTIONS: '5',
    MAX_CONNECTIONS_PER_CLIENT: '2',
  })
  const first = await open(gateway.port, '127.0.0.1')
  expect(first).toBeDefined()
  expect(await open(gateway.port, '127.0.0.1')).toBeDefined()
  expect(await open(gateway.port, '127.0.0.1')).toBeUndefined()
  expect(await open(gateway.port, '127.0.0.2')).toBeDefined()
  expect(await open(gateway.port, '127.0.0.2')).toBeDefined()
  expect(await open(gateway.port, '127.0.0.3')).toBeDefined()
  expect(await open(gateway.port, '127.0.0.4')).toBeUndefined()
  await close(first)
  expect(await open(gateway.port, '127.0.0.4')).toBeDefined()

  const { body } = await send(gateway.adminPort, 'GET', '/metrics')
  expect(body).toMatch(/^sluice_refused_connections_total{reason="client"} 1$/m)
  expect(body).toMatch(/^sluice_refused_connections_total{reason="total"} 1$/m)
  expect(body).toMatch(/^sluice_connections 5$/m)
  expect(body).toMatch(/^sluice_table_entries{table="connections"} 5$/m)
  expect(body).toMatch(/^sluice_table_capacity{table="connections"} 5$/m)
})

test('connections of a trusted proxy count towards the total limit only', async () => {
  const backend = await startBackend()
  const gateway = await startGateway({
    UPSTREAM_URL: backend.url,
    TRUSTED_PROXIES: '127.0.0.1',
    MAX_CONNECTIONS_PER_CLIENT: '1',
  })
  for (let opened = 0; opened < 3; opened++) expect(await open(gateway.port, '127.0.0.1')).toBeDefined()
  expect(await open(gateway.port, '127.0.0.2')).toBeDefined()
  expect(await open(gateway.port, '127.0.0.2')).toBeUndefined()
})

describe('a request is refused because of the length of', () => {
  let backend: Backend
  let gateway: GatewayProcess

  beforeAll(async () => {
    backend = await startBackend()
    gateway = await startGateway({ UPSTREAM_URL: backend.url })
  })

  const head = 'HTTP/1.1\r\nHost: a\r\nConnection: close\r\n'
  test.each([
    ['a path', `GET /${'x'.repeat(8_192)} ${head}\r\n`, 414],
    ['a path and a query', `GET /?${'x'.repeat(8_191)} ${head}\r\n`, 414],
    ['a field', `GET / ${head}X-Long: ${'x'.repeat(16_400)}\r\n\r\n`, 431],
    ['a list of fields', `GET / ${head}${'X-A: b\r\n'.repeat(99)}\r\n`, 431],
    ['a list of two thousand fields', `GET / ${head}${'A: b\r\n'.repeat(2_000)}\r\n`, 431],
  ])('%s', async (_, sent, status) => {
    const answer = await sendRaw(gateway.port, sent)
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} .*\r\n\r\n{"code":${status},`, 's'))
    expect(backend.seen).toHaveLength(0)
  })

  test('a request of the maximum length is not refused', async () => {
    const longest = `GET /${'x'.repeat(8_191)} ${head}${'X-A: b\r\n'.repeat(98)}\r\n`
    expect(await sendRaw(gateway.port, longest)).toMatch(/^HTTP\/1\.1 200 /)
  })
})

test('many new connections lead to frequent minor garbage collections', async () => {
  const backend = await startBackend()
  const gateway = await startGateway({ UPSTREAM_URL: backend.url })
  const minorCollections = async (): Promise<number> => {
    const { body } = await send(gateway.adminPort, 'GET', '/metrics')
    const { samples } = parseExposition(body)
    const counts = samples.filter(({ name }) => name === 'sluice_nodejs_gc_duration_seconds_count')
    // The metric does not exist before the first collection.
    return counts.find(({ labels }) => labels['kind'] === 'minor')?.value ?? 0
  }
  const before = await minorCollections()
  for (let batch = 0; batch < 5; batch++) {
    await Promise.all(Array.from({ length: 30 }, () => open(gateway.port, '127.0.0.1')))
    await sleep(150)
  }
  expect(await minorCollections()).toBeGreaterThanOrEqual(before + 5)
})
