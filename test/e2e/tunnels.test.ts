import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startRawBackend, type RawBackend } from '../support/http/backend.ts'
import { tlsSettings } from '../support/network/certificates.ts'
import { send, sendRaw, startGateway, type GatewayProcess } from '../support/gateway/gateway.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { runs } from '../support/random/runs.ts'
import { eventually } from '../support/wait/eventually.ts'
import { atRest } from '../support/wait/passes.ts'

const handshake =
  'GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
  'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'
const agreement =
  'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
  'Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n'
/** Close frames with status 1001: as a server sends them, and masked, as a client does. */
const goingAway = Buffer.from('880203e9', 'hex')
const maskedGoingAway = Buffer.from('88820000000003e9', 'hex')

/** Starts a backend that accepts every handshake; `next` returns the connections. */
async function startAgreeing(): Promise<{ backend: RawBackend; next: () => Promise<Socket> }> {
  const opened: Socket[] = []
  const waiting: ((socket: Socket) => void)[] = []
  const backend = await startRawBackend((socket) => {
    socket.once('data', () => {
      socket.write(agreement)
      const resolve = waiting.shift()
      if (resolve) resolve(socket)
      else opened.push(socket)
    })
  })
  const next = (): Promise<Socket> => {
    const socket = opened.shift()
    return socket ? Promise.resolve(socket) : new Promise((resolve) => waiting.push(resolve))
  }
  return { backend, next }
}

const clients: Socket[] = []
afterAll(() => clients.forEach((client) => client.destroy()))

/** Opens a connection, and sends the handshake and the bytes after it together. */
function begin(port: number, more = Buffer.alloc(0), path = '/chat'): Socket {
  const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true })
  clients.push(socket)
  socket.on('error', () => undefined)
  socket.write(Buffer.concat([Buffer.from(handshake.replace('/chat', path)), more]))
  return socket
}

/** Opens a tunnel, and reads the gateway's 101. */
async function openTunnel(port: number): Promise<Socket> {
  const socket = begin(port)
  let head = ''
  while (!head.includes('\r\n\r\n')) head += String(await once(socket, 'data'))
  expect(head).toMatch(/^HTTP\/1\.1 101 /)
  return socket
}

/** Everything that arrives until the other side ends. */
async function readToEnd(socket: Socket): Promise<Buffer> {
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  await once(socket, 'end')
  return Buffer.concat(chunks)
}

async function metric(gateway: Pick<GatewayProcess, 'adminPort'>, name: string): Promise<number> {
  const { body } = await send(gateway.adminPort, 'GET', '/metrics')
  return Number(new RegExp(`^${name} (-?\\d+)$`, 'm').exec(body)?.[1])
}

async function untilMetric(
  gateway: Pick<GatewayProcess, 'adminPort'>,
  name: string,
  value: number,
): Promise<void> {
  await eventually(`${name} is ${value}`, async () => (await metric(gateway, name)) === value)
}

describe('a tunnel', () => {
  let agreeing: Awaited<ReturnType<typeof startAgreeing>>
  let gateway: HostedGateway

  beforeAll(async () => {
    agreeing = await startAgreeing()
    gateway = await startHosted({ UPSTREAM_URL: agreeing.backend.url })
  })

  // Sometimes the write fails first and sometimes the read; either failure must end both sides.
  test('a tunnel ends when the backend resets it while the client sends', async () => {
    for (let tries = 0; tries < 25; tries++) {
      const client = await openTunnel(gateway.port)
      const upstream = await agreeing.next()
      upstream.once('data', () => upstream.resetAndDestroy())
      const closed = once(client, 'close')
      client.on('end', () => client.destroy())
      client.resume()
      client.write(Buffer.alloc(1_000_000))
      await closed
    }
    await untilMetric(gateway, 'sluice_upgrades', 0)
  })

  test('a tunnel forwards bytes that came with the handshake and with its response', async () => {
    const early = Buffer.from('8280aabbccdd', 'hex')
    const client = begin(gateway.port, early)
    const backend = await agreeing.next()
    expect(await once(backend, 'data')).toEqual([early])
    const whole = Buffer.concat([Buffer.from(agreement), goingAway])
    const eager = await startRawBackend((socket) => socket.once('data', () => socket.end(whole)))
    const second = await startHosted({ UPSTREAM_URL: eager.url })
    const received = await readToEnd(begin(second.port))
    expect(received.subarray(-4)).toEqual(goingAway)
    client.destroy()
  })

  test('a tunnel forwards a half-close of each side, and the bytes that the other sends after it', async () => {
    for (const clientFirst of [true, false]) {
      const client = await openTunnel(gateway.port)
      const backend = await agreeing.next()
      backend.allowHalfOpen = true
      const [first, second] = clientFirst ? [client, backend] : [backend, client]
      first.end('from the first')
      expect(String(await readToEnd(second))).toBe('from the first')
      second.end('from the second')
      expect(String(await readToEnd(first))).toBe('from the second')
    }
    await untilMetric(gateway, 'sluice_upgrades', 0)
  })

  test('a tunnel waits for the slower side', async () => {
    const client = await openTunnel(gateway.port)
    const backend = await agreeing.next()
    client.pause()
    const mebibyte = 1024 * 1024
    for (let sent = 0; sent < 64; sent++) backend.write(Buffer.alloc(mebibyte))
    const stuckBytes = await atRest(() => backend.writableLength)
    // The rest is in the system's buffers.
    expect(stuckBytes).toBeGreaterThan(32 * mebibyte)
    let bytes = 0
    client.on('data', (data: Buffer) => (bytes += data.length))
    client.resume()
    backend.end()
    await once(client, 'end')
    expect(bytes).toBe(64 * mebibyte)
    client.end()
  })

  test('a tunnel ends on one side when it breaks off on the other', async () => {
    const client = await openTunnel(gateway.port)
    const end = readToEnd(await agreeing.next())
    client.resetAndDestroy()
    await end
    const other = await openTunnel(gateway.port)
    const otherEnd = readToEnd(other)
    ;(await agreeing.next()).resetAndDestroy()
    await otherEnd
    other.destroy()
    await untilMetric(gateway, 'sluice_upgrades', 0)
  })

  test('a tunnel goes through TLS too', async () => {
    const secure = await startHosted({ UPSTREAM_URL: agreeing.backend.url, ...tlsSettings() })
    const client = connectTls({ port: secure.port, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] })
    client.write(handshake)
    const backend = await agreeing.next()
    await once(client, 'data')
    backend.write('to the client')
    expect(String(await once(client, 'data'))).toBe('to the client')
    client.write('to the backend')
    expect(String(await once(backend, 'data'))).toBe('to the backend')
    const end = readToEnd(backend)
    client.end()
    await end
    client.destroy()
  })

  test('a tunnel counts as a connection', async () => {
    const narrow = await startHosted({ UPSTREAM_URL: agreeing.backend.url, MAX_CONNECTIONS: '1' })
    const client = await openTunnel(narrow.port)
    expect(await sendRaw(narrow.port, handshake)).toBe('')
    client.destroy()
    await untilMetric(narrow, 'sluice_connections', 0)
    const next = await openTunnel(narrow.port)
    next.destroy()
  })
})

describe('a tunnel ends with a close frame', () => {
  test('an idle tunnel ends with a close frame in both directions', async () => {
    const { backend, next } = await startAgreeing()
    const gateway = await startHosted({ UPSTREAM_URL: backend.url, TUNNEL_IDLE_TIMEOUT: '1s' })
    const client = await openTunnel(gateway.port)
    const other = await next()
    const startedMs = performance.now()
    const traffic = setInterval(() => client.write(Buffer.from('8a8000000000', 'hex')), 50)
    setTimeout(() => clearInterval(traffic), 1_500)
    const [atClient, atBackend] = await Promise.all([readToEnd(client), readToEnd(other)])
    expect(performance.now() - startedMs).toBeGreaterThan(2_450)
    expect(atClient).toEqual(goingAway)
    expect(atBackend.subarray(-8)).toEqual(maskedGoingAway)
  })

  test('a tunnel ends with a close frame at shutdown, after the frame in transit', async () => {
    const { backend, next } = await startAgreeing()
    const gateway = await startGateway({ UPSTREAM_URL: backend.url })
    const idle = await openTunnel(gateway.port)
    const idleBackend = await next()
    const busy = await openTunnel(gateway.port)
    const busyBackend = await next()
    const frame = Buffer.concat([Buffer.from('827e0200', 'hex'), Buffer.alloc(0x200, 'x')])
    busyBackend.write(frame.subarray(0, 100))
    await once(busy, 'data')
    const ends = [idle, idleBackend, busy].map(readToEnd)
    const exit = gateway.process.stop()
    expect(await ends[0]).toEqual(goingAway)
    // Sent at once, as tunnels have only two seconds to end, even on a busy machine.
    busyBackend.write(frame.subarray(100))
    expect(await ends[1]).toEqual(maskedGoingAway)
    expect(await ends[2]).toEqual(Buffer.concat([frame.subarray(100), goingAway]))
    for (const socket of [idle, busy]) socket.end()
    expect(await exit).toBe(0)
  })
})

describe('a handshake', () => {
  test('a handshake that the backend does not answer is answered 504, and the connection is closed', async () => {
    const backend = await startRawBackend((socket) => void socket.resume())
    const gateway = await startHosted({ UPSTREAM_URL: backend.url, UPSTREAM_TIMEOUT: '300ms' })
    const client = begin(gateway.port)
    const answer = String(await readToEnd(client))
    expect(answer).toMatch(
      /^HTTP\/1\.1 504 .*\r\nconnection: close\r\n.*"The backend did not answer in time"}$/is,
    )
    // The client keeps its side open, and the gateway does not wait for it.
    await untilMetric(gateway, 'sluice_connections', 0)
    expect(backend.connections.every(({ destroyed }) => destroyed)).toBe(true)
  })

  test('a handshake whose client disconnects releases its connection to the backend', async () => {
    const backend = await startRawBackend((socket) => void socket.resume())
    const gateway = await startHosted({ UPSTREAM_URL: backend.url })
    for (const leave of ['end', 'resetAndDestroy'] as const) {
      const arrived = backend.connections.length
      const client = begin(gateway.port)
      await eventually('the tunnel has arrived at the backend', () => backend.connections.length !== arrived)
      client[leave]()
      await once(backend.connections[arrived] ?? client, 'close')
    }
    await untilMetric(gateway, 'sluice_connections', 0)
  })
})

const crowds = runs(50)

test(`${crowds * 50} tunnels, left at every stage, leave nothing open`, async () => {
  const unanswered = new Set<string>()
  const backend = await startRawBackend((socket, index) => {
    socket.once('data', (head) => {
      if (index % 5 === 0) unanswered.add(String(head).split(' ')[1] ?? '')
      else if (index % 5 === 1) socket.write(agreement, () => socket.resetAndDestroy())
      else if (index % 5 === 2) socket.end(agreement)
      else if (index % 5 === 3) socket.write(agreement.slice(0, 40), () => socket.resetAndDestroy())
      else socket.write(agreement)
    })
  })
  const gateway = await startGateway({ UPSTREAM_URL: backend.url })
  const before = await metric(gateway, 'sluice_process_open_fds')
  const leaveSoon = async (i: number): Promise<void> => {
    const client = begin(gateway.port, Buffer.alloc(0), `/${i}`)
    const closed = new Promise((resolve) => client.once('close', resolve))
    let isAnswered = false
    client.once('data', () => (isAnswered = true))
    if (i % 4 === 0) await once(client, 'connect')
    else
      await eventually(
        'the handshake is answered, or is at a backend that does not answer it',
        () => isAnswered || client.closed || unanswered.has(`/${i}`),
      )
    if (i % 4 === 1) client.resetAndDestroy()
    else if (i % 4 === 2) client.end(Buffer.from('half a frame'))
    else client.destroy()
    client.resume().on('end', () => client.destroy())
    await closed
  }
  for (let round = 0; round < crowds; round++)
    await Promise.all(Array.from({ length: 50 }, (_, i) => leaveSoon(round * 50 + i)))
  await untilMetric(gateway, 'sluice_connections', 0)
  await untilMetric(gateway, 'sluice_upgrades', 0)
  await eventually(
    'all connections to the backend are closed',
    () => !backend.connections.some(({ destroyed }) => !destroyed),
  )
  // Fewer connections than clients: if a client leaves before its connection is established, the connection serves the next client.
  expect(backend.connections.length).toBeGreaterThan(crowds * 35)
  // The last connections may still be closing.
  await eventually('the descriptors are closed', async () =>
    expect(await metric(gateway, 'sluice_process_open_fds')).toBeLessThanOrEqual(before + 2),
  )
})
