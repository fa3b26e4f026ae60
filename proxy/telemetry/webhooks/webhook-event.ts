/** The events of webhooks, as `events` names them. */
export const webhookEvents = ['ban', 'breaker', 'reload-failed'] as const

export type WebhookEventName = (typeof webhookEvents)[number]

/** A receiver, and the events that it gets. */
export type Webhook = { readonly url: string; readonly events: readonly WebhookEventName[] }

/**
 * An event for operators. Plain data: a worker sends it to its primary process.
 *
 * - `ban`: a client was banned, by a rule or by an operator. `policy`: under this rule; without it under all. `client`: its
 *   address, or a hash of its partition key; undefined if addresses must not be reported. `times`: which of the bans in a
 *   row of a rule it is
 * - `breaker`: Redis is unavailable (`open`), or available again. `node`: in a cluster one of its nodes, `host:port`
 * - `reload-failed`: the reloaded settings are invalid, or could not be applied: then without `mistakes`
 */
export type WebhookEvent =
  | {
      readonly type: 'ban'
      readonly by: 'rule' | 'operator'
      readonly policy?: string
      readonly client?: string
      readonly forSeconds: number
      readonly times?: number
      readonly reason?: string
    }
  | { readonly type: 'breaker'; readonly state: 'open' | 'closed'; readonly node?: string }
  | { readonly type: 'reload-failed'; readonly trigger: string; readonly mistakes: readonly string[] }

/** Queues an event. Returns at once, and never throws. */
export type Notify = (event: WebhookEvent) => void
