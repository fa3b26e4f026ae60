import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, expect, test } from 'vitest'
import { createMetrics } from '../../proxy/admin/metrics.ts'
import { createAddressReader } from '../../proxy/client-address.ts'
import { loadGatewaySettings } from '../../proxy/config/settings.ts'
import { takeTurns } from '../../proxy/edge/pipelining.ts'
import { watchSlowClients } from '../../proxy/edge/slow-clients.ts'
import { createRequestClassifier } from '../../proxy/fields.ts'
import { createHandler } from '../../proxy/handler.ts'
import type { Limiter } from '../../proxy/limiter/limiter.ts'
import { serveClients } from '../../proxy/listener.ts'
import { compileRules } from '../../proxy/rules.ts'
import { createTunnels } from '../../proxy/tunnel.ts'
import { connectionOpener } from '../../proxy/upstream/open-connection.ts'
import { UpstreamPool } from '../../proxy/upstream/pool.ts'
import { createLog } from '../../shared/log.ts'
import { startBackend } from '../support/backend.ts'
import { send } from '../support/gateway.ts'

const server = createServer()

afterAll(() => server.close())

/** A limiter with a bug: what `decide` does next. */
const bugs: (() => ReturnType<Limiter['decide']>)[] = [
  () => {
    throw new Error('a bug at once')
  },
  () => Promise.resolve({ outcome: 'refused', states: undefined } as never),
]

test('a request that throws is a 500 and the next is served', async () => {
  const backend = await startBackend()
  const now = (): number => performance.now()
  const metrics = createMetrics({
    policies: [],
    limitsEnabled: true,
    version: '0',
    readNode: () => Promise.resolve([]),
  })
  const { telemetry } = metrics
  const handler = createHandler({
    rules: compileRules(loadGatewaySettings({}, import.meta.dirname).settings.rules),
    limiter: { decide: () => bugs.shift()?.() ?? { outcome: 'allowed', states: [] } },
    addresses: createAddressReader([]),
    addressOf: ({ remoteAddress }) => remoteAddress,
    slowClients: watchSlowClients({ bodyTimeoutMs: 1000, minBodyRate: 0, sendTimeoutMs: 1000 }, now),
    maxTargetBytes: 1000,
    maxHeaderCount: 100,
    forwarder: {
      pool: new UpstreamPool({
        open: connectionOpener(new URL(backend.url)),
        connectMs: 1000,
        firstByteMs: 1000,
        idleMs: 1000,
        maxConnections: 1,
        maxQueued: 1,
        queueMs: 1000,
        now,
      }),
      telemetry,
      maxBodyBytes: 0,
      now,
      onFailure: () => undefined,
    },
    telemetry,
    log: createLog('test', 'silent'),
    upstreamPrefix: '',
    upstreamHost: 'backend',
    scheme: 'http',
    makeRequestId: randomUUID,
    now,
    classifyField: createRequestClassifier([]),
    noticeProxy: () => undefined,
    onFinished: undefined,
  })
  serveClients(server, {
    handler,
    serveInTurn: takeTurns(0),
    telemetry,
    tunnels: createTunnels({ idleMs: 1000, onOpen: () => undefined, onClose: () => undefined }),
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo

  for (let bug = 0; bug < 2; bug++)
    expect(await send(port, 'POST', '/login')).toMatchObject({
      status: 500,
      body: '{"code":500,"error":"Internal error"}',
    })
  expect(await send(port, 'POST', '/login')).toMatchObject({ status: 200, body: 'ok' })
  const errors = (await metrics.takeSnapshot()).find(({ name }) => name === 'sluice_uncaught_errors_total')
  expect(errors?.values).toContainEqual({ labels: { place: 'request' }, value: 2 })
})
