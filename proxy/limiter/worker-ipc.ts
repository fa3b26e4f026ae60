import { takesUnits, type Policy } from '../policy.ts'
import { createBatching, type DecisionHooks } from './batching.ts'
import type { Charge, Decision, Limiter, Reservation, Ticket } from './limiter.ts'

/** One end of a channel between two processes of this machine, such as that of `node:cluster`. */
export type LimiterPort = {
  /** May throw where the other process is gone. */
  send(message: object): void
  /** All messages that arrive, of whoever else uses the channel too. */
  listen(receive: (message: unknown) => void): void
}

export type IpcLimiter = Limiter & { close(): void }

/**
 * One question for several requests, each a list of policy name, partition key, policy name, partition key, … Behind a
 * name stands the number of its override after `#`, if it is one, and after a space the units to reserve, where they are not those of the policy.
 */
type Question = {
  readonly limiter: 'ask'
  readonly id: number
  readonly requests: readonly (readonly string[])[]
}

/** What a worker's requests have cost, in the order in which they ended. */
type Settlements = { readonly limiter: 'settle'; readonly settled: readonly Settlement[] }

/** Policy name, partition key, reserved units, ticket, cost in units. */
type Settlement = readonly [string, string, number, Ticket, number]

type ResetMessage = { readonly limiter: 'reset'; readonly policyName?: string; readonly partitionKey: string }

/**
 * For each request the values that `RemoteCounters.ask` describes. Behind them, where anything was reserved, a value that
 * is not looked at and a ticket for each charge, 0 where it has none.
 */
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

  const batching = createBatching({
    ...options,
    counters: {
      batchSize: 1000,
      isConnected: () => true,
      letGo: (reservation) => settleLater(reservation, 0),
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
          asked.set(id, { resolve: (reply) => resolve(withoutOtherTickets(requests, reply)), charges })
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

/**
 * Answers a worker's questions, in the process that has the counters.
 *
 * @param counters embedded ones, which answer at once
 * @param policies all that a worker may name; a request under any other is not decided
 */
export function serveLimiter(options: {
  readonly counters: EmbeddedCounters
  readonly policies: readonly Policy[]
  readonly port: LimiterPort
}): ServedLimiter {
  const { counters, port } = options
  const policyByName = new Map(options.policies.map((policy) => [nameOf(policy), policy]))
  const inFlight = createInFlightRecord()

  function answer({ id, requests }: Question): void {
    const answers = requests.map((names) => answerRequest(names, policyByName, counters))
    const values = answers.flatMap((request) => request.values)
    const reservations = answers.flatMap((request) => request.reservations)
    for (const reservation of reservations)
      if (reservation?.charge.policy.algorithm === 'concurrency') inFlight.add(reservation)
    const reply = reservations.some((reservation) => reservation !== undefined)
      ? [...values, 0, ...reservations.map((reservation) => reservation?.ticket ?? 0)]
      : values
    const message: Answer = { limiter: 'answer', id, reply }
    try {
      port.send(message)
    } catch {
      // The worker is gone, and whoever waited there with it.
    }
  }

  function settle([name, partitionKey, units, ticket, costUnits]: Settlement): void {
    const policy = policyByName.get(name)
    if (!policy) return
    const reservation: Reservation = { charge: { policy, partitionKey }, units, isLocal: false, ticket }
    if (policy.algorithm === 'concurrency' && !inFlight.remove(reservation)) return
    counters.settle(reservation, costUnits)
  }

  port.listen((message) => {
    if (isQuestion(message)) answer(message)
    else if (isSettlements(message)) message.settled.forEach(settle)
  })
  return {
    close: () => {
      for (const reservation of inFlight.takeAll()) counters.settle(reservation, 0)
    },
  }
}

type EmbeddedCounters = {
  decide(charges: readonly Charge[]): Decision
  settle(reservation: Reservation, costUnits: number): void
}

export type ServedLimiter = {
  /** To be called when the worker is gone: its requests in flight are over. */
  close(): void
}

type InFlightRecord = {
  add(reservation: Reservation): void
  /** Returns whether there was one. */
  remove(reservation: Reservation): boolean
  takeAll(): Reservation[]
}

/** The requests of one worker that are in flight under limits of concurrency. */
function createInFlightRecord(): InFlightRecord {
  const records = new Map<string, { readonly reservation: Reservation; count: number }>()
  const keyOf = ({ charge }: Reservation): string => `${nameOf(charge.policy)} ${charge.partitionKey}`
  return {
    add(reservation) {
      const known = records.get(keyOf(reservation))
      if (known) known.count += 1
      else records.set(keyOf(reservation), { reservation, count: 1 })
    },
    remove(reservation) {
      const known = records.get(keyOf(reservation))
      if (!known) return false
      known.count -= 1
      if (known.count === 0) records.delete(keyOf(reservation))
      return true
    },
    takeAll() {
      const all = [...records.values()]
      records.clear()
      return all.flatMap(({ reservation, count }) => Array.from({ length: count }, () => reservation))
    },
  }
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

/** Tells what a rule says of some clients only from what it says of the others. */
function nameOf({ name, override }: Policy): string {
  return override === undefined ? name : `${name}#${override}`
}

function nameCharges(charges: readonly Charge[]): string[] {
  return charges.flatMap(({ policy, partitionKey, units }) => [
    units === undefined ? nameOf(policy) : `${nameOf(policy)} ${units}`,
    partitionKey,
  ])
}

type RequestAnswer = {
  readonly values: readonly (number | string)[]
  /** For each charge. */
  readonly reservations: readonly (Reservation | undefined)[]
}

function answerRequest(
  names: readonly string[],
  policyByName: ReadonlyMap<string, Policy>,
  counters: EmbeddedCounters,
): RequestAnswer {
  const charges: Charge[] = []
  for (let at = 0; at < names.length; at += 2) {
    const [name = '', units] = names[at]?.split(' ') ?? []
    const policy = policyByName.get(name)
    if (!policy) return failed(names, 'a policy that the primary process does not have')
    const charge = { policy, partitionKey: names[at + 1] ?? '' }
    charges.push(units === undefined ? charge : { ...charge, units: Number(units) })
  }
  const decision = counters.decide(charges)
  if (decision.outcome === 'unavailable') return failed(names, 'unavailable')
  return {
    values: decision.states.flatMap(({ exceeded, remaining, resetMs }) => [
      exceeded ? -1 : remaining,
      resetMs,
    ]),
    reservations: decision.states.map(({ reservation }) => reservation),
  }
}

function failed(names: readonly string[], reason: string): RequestAnswer {
  return {
    values: names.map((_, index) => (index === 0 ? reason : 0)),
    reservations: Array.from({ length: names.length / 2 }, () => undefined),
  }
}

/** The reply with the tickets that `RemoteCounters.ask` describes only. */
function withoutOtherTickets(
  requests: readonly (readonly Charge[])[],
  reply: readonly unknown[],
): readonly unknown[] {
  const charges = requests.flat()
  const start = 2 * charges.length + 1
  if (reply.length < start) return reply
  const tickets = reply.slice(start).filter((_, at) => charges[at] && takesUnits(charges[at].policy))
  return [...reply.slice(0, start), ...tickets]
}

function isQuestion(message: unknown): message is Question {
  return typeof message === 'object' && message !== null && 'limiter' in message && message.limiter === 'ask'
}

function isSettlements(message: unknown): message is Settlements {
  return (
    typeof message === 'object' && message !== null && 'limiter' in message && message.limiter === 'settle'
  )
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
