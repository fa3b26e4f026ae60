import { setTimeout as wait } from 'node:timers/promises'
import type { Log } from '../../../shared/log.ts'
import { reasonOf } from '../../../shared/settings/problems.ts'
import type { TableUse } from '../telemetry.ts'
import { signedHeaders } from './signature.ts'

/** A message for one receiver. */
export type Message = { readonly id: string; readonly body: string }

export type DeliveryOptions = {
  readonly key: Buffer
  readonly userAgent: string
  /** Maximum time for a receiver to answer, in milliseconds. */
  readonly timeoutMs: number
  /** Pauses before the second attempt, the third, and so on. After the last one, the message is dropped. */
  readonly retryAfterMs: readonly number[]
  /** Maximum number of pending messages for one receiver. */
  readonly capacity: number
  /** Milliseconds of the wall clock. */
  readonly wallNow: () => number
  /** Returns a random number from 0 to below 1. */
  readonly random: () => number
  readonly log: Log
}

/** Delivers messages to one receiver, in order. */
export type Delivery = {
  /** Queues a message and returns at once. If too many are pending, the oldest is dropped. */
  push(message: Message): void
  readUse(): TableUse
  /**
   * Resolves when each pending message has been delivered, or has failed once more. Messages pushed later are dropped. Never
   * rejects.
   */
  close(): Promise<void>
}

/** @param url the URL of the receiver, of which only the origin is logged */
export function createDelivery(url: string, options: DeliveryOptions): Delivery {
  const { capacity, retryAfterMs, random, log } = options
  // The path and the query of some receivers are secrets.
  const receiver = new URL(url).origin
  const waiting: Message[] = []
  const closing = new AbortController()
  let evictions = 0
  let running: Promise<void> | undefined

  async function deliver(message: Message): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const problem = await post(url, message, options)
      if (problem === undefined) return
      const pauseMs = retryAfterMs[attempt - 1]
      if (pauseMs === undefined || closing.signal.aborted) {
        log.warn({ receiver, attempts: attempt, reason: problem }, 'webhook delivery abandoned')
        return
      }
      log.debug({ receiver, attempt, reason: problem }, 'webhook delivery failed; retrying')
      // Spreads the retries of many gateways that failed at the same time.
      await wait(pauseMs * (0.75 + random() / 2), undefined, { signal: closing.signal, ref: false }).catch(
        () => undefined,
      )
    }
  }

  async function run(): Promise<void> {
    for (let message = waiting.shift(); message; message = waiting.shift()) await deliver(message)
    running = undefined
  }

  return {
    push(message) {
      if (closing.signal.aborted) return
      if (waiting.length === capacity) {
        waiting.shift()
        evictions += 1
      }
      waiting.push(message)
      running ??= run()
    },
    readUse: () => ({ size: waiting.length, capacity, evictions }),
    async close() {
      closing.abort()
      await running
    },
  }
}

/** Tries to deliver a message once. Returns why that failed; undefined if it succeeded. */
async function post(
  url: string,
  { id, body }: Message,
  { key, userAgent, timeoutMs, wallNow }: DeliveryOptions,
): Promise<string | undefined> {
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'user-agent': userAgent,
        ...signedHeaders(key, id, wallNow(), body),
      },
      body,
      // Redirects are not followed: a message signed for one receiver must not go to another. A receiver that moves must be reconfigured.
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs),
    })
    await response.body?.cancel()
    return response.ok ? undefined : `status ${response.status}`
  } catch (error) {
    return reasonOfFetch(error)
  }
}

/** Returns the reason why `fetch` failed. The error itself only says `fetch failed`. */
function reasonOfFetch(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
  return typeof code === 'string' ? code : reasonOf(cause)
}
