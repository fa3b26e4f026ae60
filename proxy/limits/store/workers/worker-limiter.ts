import { readsStoredPlan } from '../../../policy/plans.ts'
import { countsInFlight, takesUnits } from '../../algorithms/registry.ts'
import { Batching } from '../batching.ts'
import type { Charge, Limiter, Reservation } from '../../limiter.ts'
import type { DecisionHooks } from '../remote-counters.ts'
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

export type IpcLimiter = Limiter & { close(): void }

/**
 * Maximum number of unanswered charges: some seconds of full load, and a few megabytes. It bounds the memory of a
 * worker whose primary process does not read its messages.
 */
const UNANSWERED_MAX = 50_000

/**
 * A worker's limiter where the counters are embedded: they are in the primary process, so that all workers enforce one
 * table exactly.
 *
 * @param options.timeoutMs after which a decision is made without the primary process
 * @param options.now milliseconds of a monotonic clock
 */
export function createIpcLimiter(options: {
  readonly port: LimiterPort
  readonly timeoutMs: number
  readonly now: () => number
  readonly hooks: DecisionHooks
}): IpcLimiter {
  const { port } = options
  const asked = new Map<number, Asked>()
  let unanswered = 0
  let lastId = 0

  const settle = (id: number): Asked | undefined => {
    const found = asked.get(id)
    if (found && asked.delete(id)) unanswered -= found.charges
    return found
  }
  port.listen((message) => {
    if (isAnswer(message)) settle(message.id)?.resolve(message.reply)
  })

  let waiting: Settlement[] = []
  const sendSettlements = (): void => {
    const settlements: Settlements = { limiter: 'settle', settled: waiting }
    waiting = []
    try {
      port.send(settlements)
    } catch {
      // The primary process is gone, and its counters with it.
    }
  }
  const settleLater = ({ charge, units, ticket }: Reservation, costUnits: number): void => {
    const { policy, partitionKey } = charge
    if (waiting.push([nameOf(policy), partitionKey, units, ticket, costUnits]) === 1)
      setImmediate(sendSettlements)
  }

  const batching = new Batching({
    ...options,
    counters: {
      batchSize: 1000,
      isConnected: () => true,
      // Requests in flight are over: nobody else would say so. What a worker counts by itself is never added to the primary's.
      answeredLate({ charge, ticket }) {
        if (countsInFlight(charge.policy) && ticket !== undefined)
          settleLater({ charge, units: 1, isLocal: false, ticket }, 0)
      },
      hasCountedNothing: () => true,
      ask: (requests) =>
        new Promise((resolve, reject) => {
          const charges = requests.reduce((sum, request) => sum + request.length, 0)
          if (unanswered + charges > UNANSWERED_MAX) {
            reject(new Error(`${unanswered} requests to the primary process are unanswered`))
            return
          }
          const id = ++lastId
          const question: Question = { limiter: 'ask', id, requests: requests.map(nameCharges) }
          asked.set(id, { resolve: (reply) => resolve(ofThoseThatTakeThem(requests, reply)), charges })
          unanswered += charges
          try {
            port.send(question)
          } catch (error) {
            settle(id)
            reject(error instanceof Error ? error : new Error(String(error)))
          }
        }),
    },
  })
  return {
    decide: (charges) => batching.decide(charges),
    settle: settleLater,
    close: () => batching.giveUp(),
  }
}

/** In a worker: hears of clients that were reset. */
export function hearResets(
  port: LimiterPort,
  heard: (policyName: string | undefined, partitionKey: string) => void,
): void {
  port.listen((message) => {
    if (isResetMessage(message)) heard(message.policyName, message.partitionKey)
  })
}

type Asked = { readonly resolve: (reply: readonly unknown[]) => void; readonly charges: number }

function nameCharges(charges: readonly Charge[]): string[] {
  return charges.flatMap(({ policy, partitionKey, units }) => [
    units === undefined ? nameOf(policy) : `${nameOf(policy)} ${units}`,
    partitionKey,
  ])
}

/** The reply with the tickets and plans that `RemoteCounters.ask` describes only. */
function ofThoseThatTakeThem(
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
