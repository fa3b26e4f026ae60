import { ClientEntries } from '../../proxy/limits/clients/client-entries.ts'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { createMetrics } from '../../proxy/telemetry/metrics/metrics.ts'
import { createErrorBoundary } from '../../proxy/server/error-boundary.ts'
import { createAddressReader } from '../../proxy/request/addresses/client-address.ts'
import { loadGatewaySettings } from '../../proxy/config/settings.ts'
import { admitted } from '../../proxy/http/connection/connection-limit.ts'
import { chooseProtocol } from '../../proxy/http/connection/tls/alpn.ts'
import { SlowClients } from '../../proxy/http/connection/slow-clients.ts'
import { createHeldBodyMemory } from '../../proxy/http/forward/body/held-body.ts'
import { createRequestClassifier } from '../../proxy/http/fields/header-roles.ts'
import { HeaderList } from '../../proxy/http/message/header-list.ts'
import type { HandlerOptions } from '../../proxy/server/handler-options.ts'
import { createHandler } from '../../proxy/server/exchange.ts'
import type { Policy } from '../../proxy/policy.ts'
import type { Limiter } from '../../proxy/limits/limiter.ts'
import { serveClients } from '../../proxy/server/listener.ts'
import { http2Limits } from '../../proxy/app/listen/server.ts'
import { createHttp2Connections } from '../../proxy/http/connection/http2/connections.ts'
import { createHttp2Handlers } from '../../proxy/server/http2-handlers.ts'
import { compileRules } from '../../proxy/limits/rules/rule-table.ts'
import { createTunnels } from '../../proxy/http/forward/tunnel.ts'
import { connectionOpener } from '../../proxy/http/upstream/open-connection.ts'
import { UpstreamPool } from '../../proxy/http/upstream/pool.ts'
import { createLog } from '../../shared/log.ts'
import { startBackend, type Backend } from '../support/http/backend.ts'
import { readPair } from '../support/network/certificates.ts'
import { send } from '../support/gateway/gateway.ts'
import { connectHttp2, sendHttp2 } from '../support/http/http2.ts'
import { eventually } from '../support/wait/eventually.ts'

// Each component on the path of a request throws once, and the request is answered 500: over HTTP/1.1, over HTTP/2, and as a handshake.

/** The component with the bug. */
let buggy = ''

function mayThrow(part: string): void {
  if (part !== buggy) return
  buggy = ''
  throw new Error(`a bug in ${part}`)
}

/** Wraps a function so that it throws when it is the component with the bug. */
function maybe<Args extends unknown[], Result>(
  part: string,
  run: (...args: Args) => Result,
): (...args: Args) => Result {
  return (...args) => {
    mayThrow(part)
    return run(...args)
  }
}

const now = (): number => performance.now()
const metrics = createMetrics({
  policies: [],
  limitsEnabled: true,
  version: '0',
  readNode: () => Promise.resolve([]),
})
const { telemetry } = metrics
const onException = createErrorBoundary(telemetry, createLog('test', 'silent'))
const plain = createServer({ allowHalfOpen: true })
plain.on('connection', (socket: Socket) => plain.emit(admitted, socket))
const servers = [plain, createTlsServer({ ...readPair('first'), ALPNCallback: chooseProtocol })] as const
const slowClients = new SlowClients(
  { bodyTimeoutMs: 10_000, minBodyRate: 0, sendTimeoutMs: 10_000, maxUnreadBytes: 2 ** 20 },
  now,
  () => undefined,
)
let backend: Backend
let pool: UpstreamPool
let ports: number[]

beforeAll(async () => {
  backend = await startBackend()
  const sockets = new WebSocketServer({ server: backend.server })
  sockets.on('connection', (socket) => socket.on('message', () => socket.close()))
  pool = new UpstreamPool({
    open: connectionOpener(new URL(backend.url)),
    connectMs: 1000,
    firstByteMs: 1000,
    idleMs: 1000,
    maxConnections: 4,
    maxStreams: 4,
    maxQueued: 1,
    queueMs: 1000,
    maxAgeMs: 60_000,
    maxRequests: 0,
    now,
    random: () => 0,
  })
  const rules = compileRules(loadGatewaySettings({}, import.meta.dirname).settings.rules)
  const addresses = createAddressReader([])
  const classify = createRequestClassifier([], false)
  const addressOf = ({ remoteAddress }: Pick<Socket, 'remoteAddress'>): string | undefined => remoteAddress
  const allowed = { outcome: 'allowed', states: [] } as const
  const decide = (): ReturnType<Limiter['decide']> => {
    mayThrow('limiter')
    if (buggy === 'limiter, later') return Promise.resolve().then(maybe('limiter, later', () => allowed))
    if (buggy !== 'decision') return allowed
    buggy = ''
    return Promise.resolve({ outcome: 'refused', states: undefined } as never)
  }
  const options = {
    rules: { match: maybe('rules', (...request) => rules.match(...request)) },
    limitHeaders: () => [],
    preflightRules: undefined,
    accountOverrides: undefined,
    hasPlans: false,
    hasBodyRules: false,
    readsBodies: false,
    heldBodies: createHeldBodyMemory(),
    requestBuffering: 0,
    corsHeaders: () => [],
    refusals: { everyRule: undefined, ofRules: new Map() },
    entries: new ClientEntries(() => 0),
    banning: { refused: () => undefined },
    clientLists: {
      allows: () => false,
      findDenial: () => undefined,
      applying: maybe('client lists', (policies: readonly Policy[]) => policies),
    },
    tokens: undefined,
    limiter: { decide, settle: () => undefined },
    throttledClients: { record: () => undefined },
    addresses: {
      ...addresses,
      readClientAddress: maybe('client address', (...chain) => addresses.readClientAddress(...chain)),
    },
    connections: { addressOf: maybe('address', addressOf), isWithoutClient: () => false },
    slowClients: {
      add: maybe('slow clients', (exchange) => {
        slowClients.add(exchange)
      }),
      finish: (exchange) => slowClients.finish(exchange),
    },
    maxTargetBytes: 1000,
    maxHeaderCount: 100,
    addsVia: true,
    defaultUpstream: {
      ...{ name: undefined, prefix: '', upstreamHost: undefined, isUncached: false, stripPrefix: undefined },
      setHeaders: new HeaderList(),
      forwarder: {
        upstream: pool,
        telemetry: {
          ...telemetry,
          upstreamAnswered: maybe('response', (ms) => {
            telemetry.upstreamAnswered(ms)
          }),
        },
        maxBodyBytes: 0,
        readAhead: { perResponseBytes: 2 ** 16, totalBytes: 2 ** 20, bufferedBytes: 0 },
        now: maybe('forward', now),
        onFailure: () => undefined,
      },
    },
    telemetry: {
      ...telemetry,
      requestFinished: maybe('end', (...request) => telemetry.requestFinished(...request)),
    },
    onException,
    upstreamHost: 'backend',
    scheme: 'http',
    makeRequestId: maybe('request id', () => randomUUID()),
    now: maybe('clock', now),
    classifyField: maybe('fields', classify),
    isStopping: () => false,
    onUntrustedProxy: () => undefined,
    onUnusableAuthRequest: () => undefined,
    onRejected: () => undefined,
    onCostUnread: () => undefined,
    onKeyUnread: () => undefined,
    onRefused: undefined,
    onFinished: undefined,
    tracing: undefined,
    routes: undefined,
    devices: undefined,
    hiddenCookies: undefined,
  } satisfies HandlerOptions
  const handler = createHandler({ options })
  const tunnels = createTunnels({
    idleMs: 1000,
    onOpen: () => mayThrow('tunnel'),
    onClose: () => undefined,
  })
  const { settings } = loadGatewaySettings({}, import.meta.dirname)
  const http2Handlers = createHttp2Handlers({
    handler: maybe('listener', handler),
    telemetry,
    onException,
    peers: { addresses, connections: { addressOf, isWithoutClient: () => false } },
    slowClients,
    onFault: () => undefined,
    log: createLog('test', 'silent'),
  })
  const http2 = createHttp2Connections(http2Limits(settings), http2Handlers, now)
  for (const server of servers) {
    serveClients(server, {
      handler: maybe('listener', handler),
      limits: {
        headLimits: { maxBytes: 16_384, maxFields: 100 },
        idleMs: 5_000,
        headersMs: 5_000,
      },
      http2: server === plain ? undefined : http2,
      telemetry,
      upgradeProtocols: [],
      tunnels,
      onFault: () => undefined,
      onException,
      now,
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
  }
  ports = servers.map((server) => (server.address() as AddressInfo).port)
})

afterAll(() => {
  for (const server of servers) server.close()
  slowClients.close()
  pool.destroy()
})

async function errorsCounted(): Promise<number> {
  const errors = (await metrics.takeSnapshot()).find(({ name }) => name === 'sluice_uncaught_errors_total')
  return errors?.values.find(({ labels }) => labels['place'] === 'request')?.value ?? 0
}

/** The status of the response to a handshake: 101 if a socket was opened, 0 if the connection broke. */
function openWebSocket(port: number): Promise<{ status: number }> {
  return new Promise((resolve) => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/client-side-api`)
    let status = 0
    socket.on('open', () => {
      status = 101
      socket.send('bye')
    })
    socket.on('unexpected-response', (request, { statusCode = 0 }) => {
      request.destroy()
      resolve({ status: statusCode })
    })
    socket.on('error', () => undefined)
    socket.on('close', () => resolve({ status }))
  })
}

/** Waits until all requests are over, which is a little after their responses. Otherwise they might run into the next bug. */
async function requestsFinished(): Promise<void> {
  await eventually('no slow client is left', () => slowClients.size <= 0)
}

const anywhere = [
  ...[
    'slow clients',
    'clock',
    'address',
    'request id',
    'client address',
    'rules',
    'client lists',
    'limiter',
    'limiter, later',
  ],
  ...['decision', 'fields', 'forward', 'response'],
]

const ways: readonly [string, readonly string[], () => Promise<{ status: number | undefined }>][] = [
  ['HTTP/1.1', [...anywhere, 'listener'], () => send(ports[0] ?? 0, 'POST', '/login', { body: 'text' })],
  [
    'HTTP/2',
    anywhere,
    () => sendHttp2(connectHttp2(ports[1] ?? 0), { ':method': 'POST', ':path': '/login' }, 'text'),
  ],
  ['a handshake', anywhere, () => openWebSocket(ports[0] ?? 0)],
]

describe.each(ways)('by %s', (_, parts, request) => {
  test.each(parts)('a request that throws in %s is a 500, and the next is served', async (part) => {
    await requestsFinished()
    const before = await errorsCounted()
    buggy = part
    expect((await request()).status).toBe(500)
    expect(await errorsCounted()).toBe(before + 1)
    expect((await request()).status).toBeLessThan(300)
  })

  test('a request that throws at its end has been answered', async () => {
    await requestsFinished()
    const before = await errorsCounted()
    buggy = 'end'
    expect((await request()).status).toBeLessThan(300)
    await eventually('the faulty path has been used', () => buggy === '')
    expect(await errorsCounted()).toBe(before + 1)
  })
})

test('the tunnel of an upgrade that the gateway fails to open is closed', async () => {
  buggy = 'tunnel'
  expect((await openWebSocket(ports[0] ?? 0)).status).toBe(101)
  expect(buggy).toBe('')
})

test('the slow-client watch is empty after the clients have gone', requestsFinished)
