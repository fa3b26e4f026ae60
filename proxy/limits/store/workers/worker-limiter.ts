import { readsStoredPlan } from '../../../policy/plans.ts'
import { countsInFlight, takesUnits } from '../../algorithms/registry.ts'
import { Batching } from '../batching.ts'
import type { Charge, Decision, Reservation } from '../../limiter.ts'
import type { BatchHooks } from '../remote-counters.ts'
import { readPlanNames } from '../store-replies.ts'
import {
  isAnswer,
  isResetMessage,
  nameOf,
  type LimiterPort,
  type Question,
  type Settlement,
  type Settlements,
} from './worker-messages.ts'

/**
 * Maximum number of unanswered charges: some seconds of full load, and a few megabytes. It bounds the memory of a
 * worker whose primary process does not read its messages.
 */
const UNANSWERED_MAX = 50_000

/** A question that was sent: the callback for its answer, and the number of its charges. */
type Asked = { readonly resolve: (reply: readonly unknown[]) => void; readonly charges: number }

/**
 * A worker's limiter without Redis: the counters are in the primary process, so that all workers enforce one table
 * exactly.
 */
export class IpcLimiter {
  readonly #port: LimiterPort
  readonly #batching: Batching
  /** The unanswered questions by id. */
  readonly #asked = new Map<number, Asked>()
  /** The number of charges in all unanswered questions. */
  #unansweredCharges = 0
  #lastId = 0
  /** The settlements of this turn of the event loop, sent at its end. */
  #settlements: Settlement[] = []

  /**
   * @param options.timeoutMs milliseconds after which a decision is made without the primary process
   * @param options.now milliseconds of a monotonic clock
   */
  constructor(options: {
    readonly port: LimiterPort
    readonly timeoutMs: number
    readonly now: () => number
    readonly hooks: BatchHooks
  }) {
    this.#port = options.port
    this.#port.listen((message) => {
      if (isAnswer(message)) this.#takePending(message.id)?.resolve(message.reply)
    })
    this.#batching = new Batching({
      ...options,
      counters: {
        batchSize: 1000,
        isConnected: () => true,
        // The primary process counts the request as in flight, and nothing else would end it. Other late counts stay: what a worker
        // counts by itself is never added to the primary's counters.
        answeredLate: ({ charge, ticket }) => {
          if (countsInFlight(charge.policy) && ticket !== undefined)
            this.settle({ charge, units: 1, isLocal: false, ticket }, 0)
        },
        hasCountedNothing: () => true,
        ask: (requests) => this.#ask(requests),
      },
    })
  }

  /** Implements `Limiter.decide`. */
  decide(charges: readonly Charge[]): Promise<Decision> {
    return this.#batching.decide(charges)
  }

  /** Implements `Limiter.settle`. */
  settle({ charge, units, ticket }: Reservation, costUnits: number): void {
    const { policy, partitionKey } = charge
    if (this.#settlements.push([nameOf(policy), partitionKey, units, ticket, costUnits]) === 1)
      setImmediate(() => this.#sendSettlements())
  }

  close(): void {
    this.#batching.giveUp()
  }

  #ask(requests: readonly (readonly Charge[])[]): Promise<readonly unknown[]> {
    return new Promise((resolve, reject) => {
      const charges = requests.reduce((sum, request) => sum + request.length, 0)
      if (this.#unansweredCharges + charges > UNANSWERED_MAX) {
        reject(new Error(`${this.#unansweredCharges} requests to the primary process are unanswered`))
        return
      }
      const id = ++this.#lastId
      const question: Question = { limiter: 'ask', id, requests: requests.map(nameCharges) }
      this.#asked.set(id, { resolve: (reply) => resolve(withoutUnusedValues(requests, reply)), charges })
      this.#unansweredCharges += charges
      try {
        this.#port.send(question)
      } catch (error) {
        this.#takePending(id)
        reject(error instanceof Error ? error : new Error(String(error)))
      }
    })
  }

  #takePending(id: number): Asked | undefined {
    const found = this.#asked.get(id)
    if (found && this.#asked.delete(id)) this.#unansweredCharges -= found.charges
    return found
  }

  #sendSettlements(): void {
    const message: Settlements = { limiter: 'settle', settled: this.#settlements }
    this.#settlements = []
    try {
      this.#port.send(message)
    } catch {
      // The primary process is gone, and its counters with it.
    }
  }
}

/** Calls `onReset` in a worker for each client that was reset. */
export function onResetMessage(
  port: LimiterPort,
  onReset: (policyName: string | undefined, partitionKey: string) => void,
): void {
  port.listen((message) => {
    if (isResetMessage(message)) onReset(message.policyName, message.partitionKey)
  })
}

function nameCharges(charges: readonly Charge[]): string[] {
  return charges.flatMap(({ policy, partitionKey, units }) => [
    units === undefined ? nameOf(policy) : `${nameOf(policy)} ${units}`,
    partitionKey,
  ])
}

/** Leaves out the tickets and plans of charges that have none, so that the reply is as `RemoteCounters.ask` describes. */
function withoutUnusedValues(
  requests: readonly (readonly Charge[])[],
  reply: readonly unknown[],
): readonly unknown[] {
  const charges = requests.flat()
  const start = 2 * charges.length + 1
  if (reply.length < start) return reply
  const tickets = reply.slice(start).filter((_, at) => charges[at] && takesUnits(charges[at].policy))
  const plans = readPlanNames(reply)
  if (!plans) return [...reply.slice(0, start), ...tickets]
  const read = [...plans].filter((_, at) => charges[at] && readsStoredPlan(charges[at].policy))
  return [...reply.slice(0, start), ...tickets, read]
}
