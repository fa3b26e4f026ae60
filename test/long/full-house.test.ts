import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { readFileSync } from 'node:fs'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { describe, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { authorityFile, tlsSettings } from '../support/network/certificates.ts'
import { openConnection, openConnections, type ClientConnection } from '../support/http/client-connections.ts'
import { send, startGateway, type GatewayProcess } from '../support/gateway/gateway.ts'
import { sendHttp2 } from '../support/http/http2.ts'
import { eventually } from '../support/wait/eventually.ts'

/**
 * The maximum number of connections is reached. Two addresses could do that with the connections that each may have, send nothing, and shut
 * everybody else out. So idle connections are evicted for new ones, as in nginx.
 */

const [a, b, c, d] = ['127.0.0.2', '127.0.0.3', '127.0.0.4', '127.0.0.5'] as const
const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`
const handshake =
  'GET /tunnel HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
  'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'

/** Starts a gateway and a backend that answers `/held` when a test says so, only begins to answer `/begun`, and echoes tunnels. */
async function startHouse(
  settings: Record<string, string>,
): Promise<GatewayProcess & { readonly held: ServerResponse[] }> {
  const held: ServerResponse[] = []
  const backend = await startBackend((request, response) => {
    if (request.url === '/held') held.push(response)
    else if (request.url === '/begun') response.write('begun')
    else request.resume().on('end', () => response.end('ok'))
  })
  backend.server.on('upgrade', (_, socket) => {
    socket.write(
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
        'Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n',
    )
    socket.on('error', () => undefined)
    socket.pipe(socket)
  })
  return { ...(await startGateway({ UPSTREAM_URL: backend.url, ...settings })), held }
}

/** Opens a connection, has one request answered, and leaves the connection idle. */
async function openServed(port: number, from: string, path = '/'): Promise<ClientConnection> {
  const connection = await openConnection(port, from, get(path))
  await connection.until(/ok$/)
  return connection
}

/** Opens a connection whose request is in flight, with the beginning of its response received. */
async function openBusy(port: number, from: string): Promise<ClientConnection> {
  const connection = await openConnection(port, from, get('/begun'))
  await connection.until(/begun/)
  return connection
}

async function openManyBusy(count: number, port: number, from: string): Promise<ClientConnection[]> {
  const connections: ClientConnection[] = []
  for (let opened = 0; opened < count; opened++) connections.push(await openBusy(port, from))
  return connections
}

async function metric(gateway: Pick<GatewayProcess, 'adminPort'>, name: string): Promise<number> {
  const { body } = await send(gateway.adminPort, 'GET', '/metrics')
  const line = body.split('\n').find((text) => text.startsWith(`${name} `))
  return Number(line?.slice(name.length + 1))
}

function openOnes(connections: readonly ClientConnection[]): number[] {
  return connections.flatMap(({ socket }, i) => (socket.destroyed ? [] : [i]))
}

const idle = 'sluice_evicted_connections_total{state="idle"}'
const busy = 'sluice_evicted_connections_total{state="busy"}'

describe('idle connections make room', () => {
  let gateway: GatewayProcess | undefined

  test.each([
    ['nothing', '', /^$/],
    ['empty lines', '\r\n\r\n', /^$/],
    ['half a request', 'GET / HTTP/1.1\r\nHos', /^$/],
    ['a request that has been answered', get('/'), /ok$/],
  ])(
    'of two clients that have sent %s, the one with the most loses its longest idle connection',
    async (_, sent, answer) => {
      gateway ??= await startHouse({ MAX_CONNECTIONS: '12', MAX_CONNECTIONS_PER_CLIENT: '7' })
      const { port } = gateway
      const evictedBefore = await metric(gateway, idle)
      const first = await openConnections(7, port, a, sent, answer)
      const second = await openConnections(5, port, b, sent, answer)
      const served = [await openServed(port, c), await openServed(port, c)]
      await Promise.all([first[0]?.closed, first[1]?.closed])
      expect(openOnes(second)).toEqual([0, 1, 2, 3, 4])
      expect(openOnes(first)).toEqual([2, 3, 4, 5, 6])
      served.push(await openServed(port, d), await openServed(port, d))
      await Promise.all([first[2]?.closed, second[0]?.closed])
      expect([openOnes(first), openOnes(second)]).toEqual([
        [3, 4, 5, 6],
        [1, 2, 3, 4],
      ])
      expect(openOnes(served)).toEqual([0, 1, 2, 3])
      expect((await metric(gateway, idle)) - evictedBefore).toBe(4)
      expect(await metric(gateway, busy)).toBe(0)
      expect(await metric(gateway, 'sluice_connections')).toBe(12)
      expect(await metric(gateway, 'sluice_table_evictions_total{table="connections"}')).toBe(
        evictedBefore + 4,
      )
      expect(await metric(gateway, 'sluice_refused_connections_total{reason="total"}')).toBe(0)
      for (const { socket } of [...first, ...second, ...served]) socket.destroy()
      const { adminPort } = gateway
      await eventually('all connections are closed', async () =>
        expect(await metric({ adminPort }, 'sluice_connections')).toBe(0),
      )
    },
  )

  test('a client that keeps opening connections loses its own', async () => {
    const gateway = await startHouse({ MAX_CONNECTIONS: '6', MAX_CONNECTIONS_PER_CLIENT: '0' })
    const one = await openServed(gateway.port, a)
    const many = await openConnections(30, gateway.port, b)
    await Promise.all(many.slice(0, -5).map(({ closed }) => closed))
    one.socket.write(get('/'))
    await one.until(/ok.*ok$/s)
    expect(openOnes(many)).toHaveLength(5)
  })

  test('the connection that was used last is closed last', async () => {
    const gateway = await startHouse({ MAX_CONNECTIONS: '3' })
    const used = await openServed(gateway.port, a)
    const fresh = await openServed(gateway.port, a)
    used.socket.write(get('/'))
    await used.until(/ok.*ok$/s)
    await openServed(gateway.port, b)
    await openServed(gateway.port, c)
    await fresh.closed
    expect(openOnes([used, fresh])).toEqual([0])
  })

  test('connections with a request in flight and tunnels are not closed to make room', async () => {
    const gateway = await startHouse({ MAX_CONNECTIONS: '4' })
    const held = await openConnection(gateway.port, a, get('/held'))
    const upload = await openConnection(
      gateway.port,
      a,
      'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n',
    )
    await upload.until(/^HTTP\/1\.1 100 /)
    const tunnel = await openConnection(gateway.port, a, handshake)
    await tunnel.until(/^HTTP\/1\.1 101 .*\r\n\r\n/s)
    for (let opened = 0; opened < 5; opened++) await openServed(gateway.port, opened % 2 === 0 ? a : b)
    tunnel.socket.write('echo')
    await tunnel.until(/echo$/)
    upload.socket.write('123456789')
    await upload.until(/ok$/)
    gateway.held[0]?.end('done')
    await held.until(/done$/)
    expect(await metric(gateway, idle)).toBe(4)
  })
})

describe('where no connection is idle', () => {
  test('a client with far more connections than the newcomer loses its oldest; otherwise the newcomer is refused', async () => {
    const gateway = await startHouse({ MAX_CONNECTIONS: '14', MAX_CONNECTIONS_PER_CLIENT: '0' })
    const few = await openManyBusy(3, gateway.port, a)
    const many = await openManyBusy(11, gateway.port, b)
    const newcomer = await openBusy(gateway.port, c)
    await many[0]?.closed
    // A reset, as an HTTP/1.0 client could take a close for the end of the response.
    expect(many[0]?.ended()).toBe('reset')
    // Even c would have more than an eighth of the largest client's connections with its second one.
    for (const from of [a, b, c]) {
      const refused = await openConnection(gateway.port, from, get('/'))
      await refused.closed
      expect(refused.received()).toBe('')
    }
    expect(openOnes([...few, newcomer])).toEqual([0, 1, 2, 3])
    expect(openOnes(many)).toHaveLength(10)
    expect(await metric(gateway, busy)).toBe(1)
    expect(await metric(gateway, idle)).toBe(0)
    expect(await metric(gateway, 'sluice_refused_connections_total{reason="total"}')).toBe(3)
    newcomer.socket.destroy()
    many[1]?.socket.destroy()
    await eventually('twelve connections are open', async () =>
      expect(await metric(gateway, 'sluice_connections')).toBe(12),
    )
    await openServed(gateway.port, d)
  })
})

test('connections of a trusted proxy count as clients of their own: another client with more than one loses one first', async () => {
  const gateway = await startHouse({ MAX_CONNECTIONS: '6', TRUSTED_PROXIES: a })
  const proxy = await openConnections(4, gateway.port, a)
  const stranger = await openConnections(2, gateway.port, b)
  const newcomers = [await openServed(gateway.port, c), await openServed(gateway.port, d)]
  await Promise.all([stranger[0]?.closed, proxy[0]?.closed])
  expect([openOnes(stranger), openOnes(proxy), openOnes(newcomers)]).toEqual([[1], [1, 2, 3], [0, 1]])
})

test('clients are identified by their addresses in PROXY protocol headers', async () => {
  const gateway = await startHouse({ MAX_CONNECTIONS: '8', PROXY_PROTOCOL: '1', TRUSTED_PROXIES: a })
  const named = (address: string, sent = ''): string => `PROXY TCP4 ${address} 192.0.2.1 1 2\r\n${sent}`
  const first = await openConnections(4, gateway.port, a, named('203.0.113.1'))
  const second = await openConnections(4, gateway.port, a, named('203.0.113.2', get('/')), /ok$/)
  const third = await openConnection(gateway.port, a, named('203.0.113.3', get('/')))
  await third.until(/ok$/)
  await first[0]?.closed
  expect([openOnes(first), openOnes(second)]).toEqual([
    [1, 2, 3],
    [0, 1, 2, 3],
  ])
})

describe('with TLS', () => {
  const ca = readFileSync(authorityFile)
  const secure = async (port: number, from: string, protocol: string): Promise<TLSSocket> => {
    const secured = connectTls({
      ...{ host: '127.0.0.1', port, localAddress: from },
      ...{ servername: 'localhost', ca, ALPNProtocols: [protocol] },
    })
    secured.on('error', () => undefined)
    await once(secured, 'secureConnect')
    return secured
  }

  test('unfinished handshakes, idle HTTP/1.1 connections and idle HTTP/2 sessions make room', async () => {
    const gateway = await startHouse({ MAX_CONNECTIONS: '5', ...tlsSettings() })
    const unmade = await openConnection(gateway.port, a)
    const http1 = await secure(gateway.port, a, 'http/1.1')
    http1.write(get('/'))
    await once(http1, 'data')
    const session = async (from: string) => {
      const socket = await secure(gateway.port, from, 'h2')
      const made = connectHttp2('https://localhost', { createConnection: () => socket })
      made.on('error', () => undefined)
      return made
    }
    const http2 = await session(a)
    expect((await sendHttp2(http2, { ':path': '/' })).body).toBe('ok')
    const busyHttp1 = await secure(gateway.port, a, 'http/1.1')
    busyHttp1.write(get('/held'))
    const busyHttp2 = await session(a)
    const answer = sendHttp2(busyHttp2, { ':path': '/held' })
    await eventually('two requests are held', () => expect(gateway.held.length).toBe(2))

    const goaway = once(http2, 'goaway')
    const closed = [once(http1.resume(), 'close'), once(http2, 'close')]
    for (const [i, from] of [b, c, d].entries()) {
      const newcomer = await session(from)
      expect((await sendHttp2(newcomer, { ':path': '/' })).body).toBe('ok')
      if (i === 0) await unmade.closed
      if (i === 1) await closed[0]
    }
    expect((await goaway).slice(0, 2)).toEqual([0, 1])
    await closed[1]
    expect(await metric(gateway, idle)).toBe(3)
    const newcomer = await session('127.0.0.6')
    expect((await sendHttp2(newcomer, { ':path': '/' })).body).toBe('ok')
    for (const response of gateway.held) response.end('done')
    expect((await answer).body).toBe('done')
    const [response] = (await once(busyHttp1, 'data')) as [Buffer]
    expect(response.toString()).toMatch(/done/)
    expect(gateway.process.output()).not.toContain('"level":"error"')
  })
})

describe('the log', () => {
  const fullLines = (gateway: GatewayProcess): Record<string, unknown>[] =>
    gateway.process
      .stdout()
      .split('\n')
      .filter((line) => line.includes('MAX_CONNECTIONS'))
      .map((line) => JSON.parse(line) as Record<string, unknown>)

  test.each(['1', '0'])(
    'says once a minute that the limit is reached, and which client has the most: LOG_ADDRESSES=%s',
    async (logAddresses) => {
      const gateway = await startHouse({ MAX_CONNECTIONS: '5', LOG_ADDRESSES: logAddresses })
      await openConnections(4, gateway.port, a)
      for (let opened = 0; opened < 8; opened++) await openServed(gateway.port, b)
      const told = { level: 'warn', maxConnections: 5, newConnections: 1, clients: 2, mostOfOneClient: 4 }
      expect(fullLines(gateway)).toEqual([
        expect.objectContaining(logAddresses === '1' ? { ...told, client: a } : told),
      ])
      if (logAddresses === '0') expect(gateway.process.stdout()).not.toContain(a)
    },
  )
})

test('two addresses with five thousand idle connections each shut nobody out', async () => {
  const gateway = await startHouse({ HEADERS_TIMEOUT: '2m' })
  const hold = async (from: string): Promise<ClientConnection[]> => {
    const held: ClientConnection[] = []
    while (held.length < 5_000)
      held.push(...(await Promise.all(Array.from({ length: 100 }, () => openConnection(gateway.port, from)))))
    return held
  }
  const held = [...(await hold(a)), ...(await hold(b))]
  await eventually('all places are taken', async () =>
    expect(await metric(gateway, 'sluice_connections')).toBe(10_000),
  )
  for (let opened = 0; opened < 300; opened++) await openServed(gateway.port, c)
  expect(await metric(gateway, idle)).toBe(300)
  expect(openOnes(held).length).toBeGreaterThanOrEqual(9_700)
  for (const { socket } of held) socket.destroy()
})
