import { randomUUID } from 'node:crypto'
import { within } from '../../../shared/within.ts'
import type { TableUse } from '../telemetry.ts'
import { createDelivery, type DeliveryOptions } from './delivery.ts'
import type { Notify, Webhook, WebhookEvent } from './webhook-event.ts'

export type Webhooks = {
  readonly notify: Notify
  /** Reads the number of pending messages, for all receivers together. */
  readUse(): TableUse
  /** Sends the pending messages, within two seconds. Never rejects. */
  close(): Promise<void>
}

/** How long the exit of the process waits for receivers. */
const CLOSE_MS = 2_000

/**
 * Sends events to receivers in the background, as JSON in the format of Standard Webhooks: `type`, `timestamp`, `data`.
 *
 * @param options.host the name of this machine, which distinguishes replicas
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
