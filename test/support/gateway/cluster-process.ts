import cluster, { type Worker } from 'node:cluster'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { combineHealth, createHealth } from '../../../proxy/admin/health.ts'
import { createMetrics } from '../../../proxy/telemetry/metrics/metrics.ts'
import { renderMetrics, watchProcess } from '../../../proxy/telemetry/metrics/prometheus.ts'
import { createAdminHandler } from '../../../proxy/admin/server.ts'
import { answerReports, WorkerReports } from '../../../proxy/admin/worker-reports.ts'
import type { Policy } from '../../../proxy/policy.ts'
import { createLog } from '../../../shared/log.ts'

// A primary process with the admin listener, and workers that carry out the orders sent to `/api/tell`.

type Order = { readonly order: string; readonly times: number }

const partition = [{ kind: 'ip' }] as const
const policy: Policy = {
  name: 'login',
  quota: 9,
  windowMs: 9,
  algorithm: 'fixed',
  mode: 'enforce',
  onStoreError: 'local',
  partition,
}

if (cluster.isPrimary) await servePrimary(Number(process.argv[2]))
else serveWorker()

async function servePrimary(workerCount: number): Promise<void> {
  const reports = new WorkerReports(500)
  const start = async (): Promise<number> => {
    const worker = cluster.fork()
    reports.add(worker)
    await untilDone(worker)
    return worker.id
  }
  for (let count = 0; count < workerCount; count++) await start()

  const handler = createAdminHandler({
    token: undefined,
    log: createLog('primary', 'info'),
    readMetrics: async () => renderMetrics(await reports.readMetrics()),
    readHealth: async () => combineHealth('ready', await reports.readHealth()),
    apiRoutes: new Map([
      ['/api/start', { GET: start }],
      [
        '/api/tell',
        {
          GET: async (query: URLSearchParams) => {
            const worker = cluster.workers?.[query.get('worker') ?? '']
            const order: Order = { order: query.get('order') ?? '', times: Number(query.get('times')) }
            if (!worker) throw new Error('no such worker')
            worker.send(order)
            await untilDone(worker)
          },
        },
      ],
    ]),
  })
  const server = createServer(handler).listen(0, '127.0.0.1', () => {
    process.stdout.write(`port ${(server.address() as AddressInfo).port}\n`)
  })
}

/** Resolves when the worker has carried out its order, or has exited. */
function untilDone(worker: Worker): Promise<void> {
  return new Promise((resolve) => {
    const finish = (): void => {
      worker.off('exit', finish)
      worker.off('message', receive)
      resolve()
    }
    const receive = (message: object): void => {
      if ('done' in message) finish()
    }
    worker.on('exit', finish)
    worker.on('message', receive)
  })
}

function serveWorker(): void {
  const metrics = createMetrics({
    policies: [policy],
    limitsEnabled: true,
    version: '1.2.3',
    readNode: watchProcess('sluice_'),
  })
  const { telemetry } = metrics
  const health = createHealth({ storeState: () => 'available', upstreamState: () => metrics.upstreamState() })
  const send = (message: object): boolean => process.send?.(message) ?? false
  const listen = (receive: (message: unknown) => void): unknown => process.on('message', receive)
  answerReports({
    send,
    listen,
    takeSnapshot: () => metrics.takeSnapshot(),
    readActivity: () => metrics.readActivity(),
    readHealth: () => health.read(),
    answerClients: () => Promise.resolve({ of: 'list', clients: [] }),
  })
  telemetry.observeTable('counters', () => ({ size: 5, capacity: 100, evictions: 1 }))
  telemetry.connectionOpened()

  const deeds: Record<string, () => void> = {
    count: () => {
      telemetry.requestFinished(200, 10)
      telemetry.decided(policy, 'allowed')
    },
    'open-breaker': () => telemetry.breakerChanged('open', ''),
    'lose-backend': () => telemetry.upstreamFailed('refused'),
    ready: () => health.markReady(),
    exit: () => process.exit(),
    hang: () => {
      send({ done: 'hang' })
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3000)
    },
  }
  listen((message) => {
    const { order, times } = message as Order
    if (!(order in deeds)) return
    for (let done = 0; done < times; done++) deeds[order]?.()
    send({ done: order })
  })
  send({ done: 'start' })
}
