/** The events of webhooks, as `events` names them. */
export const webhookEvents = ['ban', 'breaker', 'reload-failed'] as const

export type WebhookEventName = (typeof webhookEvents)[number]

/** A receiver, and the events that it gets. */
export type Webhook = { readonly url: string; readonly events: readonly WebhookEventName[] }

/**
 * An event for operators. It is plain data, because a worker sends it to its primary process.
 *
 * - `ban`: a rule or an operator has banned a client. `policy` is the rule of the ban; without it, the ban applies under all rules.
 *   `client` is the client's address, or a hash of its partition key; undefined if addresses must not be reported. `times` is the number of
 *   consecutive bans by the rule
 * - `breaker`: Redis is unavailable (`open`), or available again (`closed`). `node`, in a cluster, is the node concerned, as `host:port`
 * - `reload-failed`: the reloaded settings are invalid, or could not be applied. In the latter case, `mistakes` is empty
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
