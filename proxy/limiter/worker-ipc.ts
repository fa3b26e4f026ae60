import type { Policy } from '../policy.ts'
import { createBatching, type DecisionHooks } from './batching.ts'
import type { Charge, Decision, Limiter } from './limiter.ts'

/** One end of a channel between two processes of this machine, such as that of `node:cluster`. */
export type LimiterPort = {
  /** May throw where the other process is gone. */
  send(message: object): void
  /** All messages that arrive, of whoever else uses the channel too. */
  listen(receive: (message: unknown) => void): void
}

export type IpcLimiter = Limiter & { close(): void }

/** One question for several requests, each a list of policy name, partition key, policy name, partition key, … */
type Question = {
  readonly limiter: 'ask'
  readonly id: number
  readonly requests: readonly (readonly string[])[]
}

type ResetMessage = { readonly limiter: 'reset'; readonly policyName?: string; readonly partitionKey: string }

/** For each request the values that `RemoteCounters.ask` describes. */
type Answer = {
  readonly limiter: 'answer'
  readonly id: number
  readonly reply: readonly (number | string)[]
}

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

  const batching = createBatching({
    ...options,
    counters: {
      batchSize: 1000,
      isConnected: () => true,
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
          asked.set(id, { resolve, charges })
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
  return { decide: (charges) => batching.decide(charges), close: () => batching.giveUp() }
}

/**
 * Answers a worker's questions, in the process that has the counters.
 *
 * @param decide of embedded counters, which answer at once
 * @param policies all that a worker may name; a request under any other is not decided
 */
export function serveLimiter(options: {
  readonly decide: (charges: readonly Charge[]) => Decision
  readonly policies: readonly Policy[]
  readonly port: LimiterPort
}): void {
  const { decide, port } = options
  const policyByName = new Map(options.policies.map((policy) => [policy.name, policy]))

  port.listen((message) => {
    if (!isQuestion(message)) return
    const reply = message.requests.flatMap((names) => answerRequest(names, policyByName, decide))
    const answer: Answer = { limiter: 'answer', id: message.id, reply }
    try {
      port.send(answer)
    } catch {
      // The worker is gone, and whoever waited there with it.
    }
  })
}

/** Tells a worker that a client was reset: under the policy of this name, or under all. */
export function tellReset(port: LimiterPort, policyName: string | undefined, partitionKey: string): void {
  const reset: ResetMessage = {
    limiter: 'reset',
    partitionKey,
    ...(policyName === undefined ? {} : { policyName }),
  }
  try {
    port.send(reset)
  } catch {
    // The worker is gone, and what it knew of the client with it.
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
  return charges.flatMap(({ policy, partitionKey }) => [policy.name, partitionKey])
}

function answerRequest(
  names: readonly string[],
  policyByName: ReadonlyMap<string, Policy>,
  decide: (charges: readonly Charge[]) => Decision,
): (number | string)[] {
  const charges: Charge[] = []
  for (let at = 0; at < names.length; at += 2) {
    const policy = policyByName.get(names[at] ?? '')
    if (!policy)
      return names.map((_, index) => (index === 0 ? 'a policy that the primary process does not have' : 0))
    charges.push({ policy, partitionKey: names[at + 1] ?? '' })
  }
  const decision = decide(charges)
  if (decision.outcome === 'unavailable') return names.map((_, index) => (index === 0 ? 'unavailable' : 0))
  return decision.states.flatMap(({ exceeded, remaining, resetMs }) => [exceeded ? -1 : remaining, resetMs])
}

function isQuestion(message: unknown): message is Question {
  return typeof message === 'object' && message !== null && 'limiter' in message && message.limiter === 'ask'
}

function isResetMessage(message: unknown): message is ResetMessage {
  return (
    typeof message === 'object' && message !== null && 'limiter' in message && message.limiter === 'reset'
  )
}

function isAnswer(message: unknown): message is Answer {
  return (
    typeof message === 'object' && message !== null && 'limiter' in message && message.limiter === 'answer'
  )
}
