import { randomUUID } from 'node:crypto'
import { within } from '../../../shared/within.ts'
import type { TableUse } from '../telemetry.ts'
import { createDelivery, type DeliveryOptions } from './delivery.ts'
import type { Notify, Webhook, WebhookEvent } from './webhook-event.ts'

export type Webhooks = {
  readonly notify: Notify
  /** Messages that wait, for all receivers together. */
  readUse(): TableUse
  /** Sends the pending messages, in no more than two seconds. Never rejects. */
  close(): Promise<void>
}

/** How long the end of the process waits for receivers. */
const CLOSE_MS = 2_000

/**
 * Sends events to receivers, in the background, with JSON as Standard Webhooks has it: `type`, `timestamp`, `data`.
 *
 * @param options.host the name of this machine, by which replicas are told apart
 */
export function createWebhooks(
  webhooks: readonly Webhook[],
  options: DeliveryOptions & { readonly host: string },
): Webhooks {
  const { host, wallNow, log } = options
  const receivers = webhooks.map(({ url, events }) => ({ events, delivery: createDelivery(url, options) }))

  function messageOf({ type, ...data }: WebhookEvent): { id: string; body: string } {
    const timestamp = new Date(wallNow()).toISOString()
    return { id: `msg_${randomUUID()}`, body: JSON.stringify({ type, timestamp, data: { ...data, host } }) }
  }

  return {
    notify(event) {
      const wanted = receivers.filter(({ events }) => events.includes(event.type))
      if (wanted.length === 0) return
      const message = messageOf(event)
      for (const { delivery } of wanted) delivery.push(message)
    },
    readUse() {
      const uses = receivers.map(({ delivery }) => delivery.readUse())
      const sum = (of: keyof TableUse): number => uses.reduce((total, use) => total + use[of], 0)
      return { size: sum('size'), capacity: sum('capacity'), evictions: sum('evictions') }
    },
    close: () =>
      within(CLOSE_MS, Promise.all(receivers.map(({ delivery }) => delivery.close()))).then(
        () => undefined,
        (error: unknown) => log.warn({ reason: String(error) }, 'webhook events lost at shutdown'),
      ),
  }
}
