import { hostname } from 'node:os'
import type { Log } from '../../../shared/log.ts'
import type { Running } from '../../../shared/shutdown.ts'
import type { OnBan } from '../../limits/clients/client-entry.ts'
import type { GatewaySettings } from '../../config/settings.ts'
import type { Telemetry } from '../../telemetry/telemetry.ts'
import { webhookKey } from '../../telemetry/webhooks/signature.ts'
import type { Notify, WebhookEvent } from '../../telemetry/webhooks/webhook-event.ts'
import { createWebhooks } from '../../telemetry/webhooks/webhooks.ts'
import { version } from './version.ts'

/** Maximum time for a receiver to answer. */
const TIMEOUT_MS = 10_000
/**
 * Delays before each retry. A receiver that is being redeployed is back after some of them; a receiver that is unreachable for half an hour
 * misses messages.
 */
const RETRY_AFTER_MS = [1_000, 5_000, 30_000, 120_000, 600_000, 1_200_000]
/** Maximum number of messages waiting for each receiver: half a megabyte. */
const CAPACITY = 1_000

export type ComposedWebhooks = Running & {
  readonly notify: Notify
  observe(telemetry: Pick<Telemetry, 'observeTable'>): void
}

/** Composes the webhooks in the process that reads the settings; undefined without webhooks. */
export function composeWebhooks(settings: GatewaySettings, log: Log): ComposedWebhooks | undefined {
  const { webhooks, webhookSecret } = settings
  const key = webhookKey(webhookSecret ?? '')
  if (webhooks.length === 0 || !key) return undefined
  const made = createWebhooks(webhooks, {
    key,
    userAgent: `sluice/${version}`,
    host: hostname(),
    timeoutMs: TIMEOUT_MS,
    retryAfterMs: RETRY_AFTER_MS,
    capacity: CAPACITY,
    wallNow: Date.now,
    random: Math.random,
    log,
  })
  return {
    notify: (event) => made.notify(event),
    observe: (telemetry) => telemetry.observeTable('webhooks', () => made.readUse()),
    close: () => made.close(),
  }
}

/** Returns telemetry that also sends an event when a circuit breaker changes. */
export function notifyOfBreaker(telemetry: Telemetry, notify: Notify | undefined): Telemetry {
  if (!notify) return telemetry
  return {
    ...telemetry,
    breakerChanged(state, node) {
      telemetry.breakerChanged(state, node)
      notify({ type: 'breaker', state, ...(node !== '' && { node }) })
    },
  }
}

/** Makes the function that sends an event for each ban; undefined without webhooks. */
export function notifyOfBans(notify: Notify | undefined): OnBan | undefined {
  return (
    notify &&
    (({ by, policy, times, reason }, forMs, client) => {
      notify({
        type: 'ban',
        by,
        ...(policy !== undefined && { policy }),
        ...(client !== undefined && { client }),
        forSeconds: forMs / 1000,
        ...(times !== undefined && { times }),
        ...(reason !== undefined && { reason }),
      })
    })
  )
}

/** A worker, as a source of messages. */
type MessageSource = {
  readonly id: number
  on(event: 'message', listener: (message: unknown) => void): unknown
  on(event: 'exit', listener: () => void): unknown
}

type FromWorker = { readonly webhook: WebhookEvent }

/** Sends events from a worker to the primary process, which sends them to the receivers. */
export function notifyPrimary({ webhooks }: GatewaySettings): Notify | undefined {
  if (webhooks.length === 0) return undefined
  return (event) => {
    const message: FromWorker = { webhook: event }
    if (process.connected) process.send?.(message, () => undefined)
  }
}

/**
 * Receives the events of workers in the primary process. Each worker has circuit breakers of its own, which open one after the other. For
 * each node of Redis, an event reports when the first breaker opens and when the last one has closed.
 *
 * @param isStopping whether the gateway is stopping, so that workers that exit are not replaced
 */
export function receiveWorkerEvents(
  notify: Notify,
  isStopping: () => boolean,
): (worker: MessageSource) => void {
  /** The workers whose circuit breaker is open, by node. */
  const open = new Map<string | undefined, Set<number>>()
  const breakerChanged = (id: number, state: 'open' | 'closed', node: string | undefined): void => {
    const workers = open.get(node) ?? new Set()
    const wasOpen = workers.size > 0
    if (state === 'open') workers.add(id)
    else workers.delete(id)
    const isOpen = workers.size > 0
    if (isOpen) open.set(node, workers)
    else open.delete(node)
    if (isOpen !== wasOpen) notify({ type: 'breaker', state, ...(node !== undefined && { node }) })
  }
  return (worker) => {
    worker.on('message', (message: unknown) => {
      if (!isFromWorker(message)) return
      const { webhook: event } = message
      if (event.type === 'breaker') breakerChanged(worker.id, event.state, event.node)
      else notify(event)
    })
    worker.on('exit', () => {
      // A gateway that stops does not know whether Redis is available again.
      if (isStopping()) for (const workers of open.values()) workers.delete(worker.id)
      // The worker that replaces it reports its own breakers.
      else for (const node of [...open.keys()]) breakerChanged(worker.id, 'closed', node)
    })
  }
}

function isFromWorker(message: unknown): message is FromWorker {
  return typeof message === 'object' && message !== null && 'webhook' in message
}
