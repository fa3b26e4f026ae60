import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The algorithms whose costs are measured. Under `concurrency` a request is counted twice: when it begins and when it ends. */
export const measuredAlgorithms = ['fixed', 'sliding', 'token-bucket'] as const
export type MeasuredAlgorithm = (typeof measuredAlgorithms)[number]

/** What a decision costs on the machine where `npm run capacity -- --measure` ran. */
export type Costs = {
  readonly machine: Readonly<Record<'date' | 'processor' | 'node' | 'redis', string>>
  /** Microseconds of CPU of a Redis process. */
  readonly redis: {
    /** To be woken up after it had nothing to do for so long: a sleeping core takes longer. In ascending order. */
    readonly wakeUs: readonly { readonly idleUs: number; readonly us: number }[]
    /** A command, without what it decides: to read it, to start the script, to write the reply. */
    readonly commandUs: Readonly<Record<MeasuredAlgorithm, number>>
    /** A charge of one rule. */
    readonly chargeUs: Readonly<Record<MeasuredAlgorithm, number>>
  }
  /** Microseconds of CPU of a gateway's process. */
  readonly gateway: {
    /** A request and its response, counted in the process. */
    readonly requestUs: number
    /** To send a command and to read its reply. */
    readonly commandUs: number
    /** A decision in it. */
    readonly decisionUs: number
  }
  /** Bytes of the Redis protocol, without TCP and TLS. */
  readonly network: Readonly<Record<'commandIn' | 'commandOut' | 'chargeIn' | 'chargeOut', number>>
  /** Bytes of Redis's memory for a client and rule with ten requests, its expiry included. */
  readonly clientBytes: Readonly<Record<MeasuredAlgorithm, number>>
}

const file = join(import.meta.dirname, 'costs.json')

export function readCosts(): Costs {
  return JSON.parse(readFileSync(file, 'utf8')) as Costs
}

export function writeCosts(costs: Costs): void {
  writeFileSync(file, `${JSON.stringify(costs, null, 2)}\n`)
}

/** What it costs to wake up after so many microseconds of sleep, between two that were measured. */
export function wakeUpUs(wakeUs: Costs['redis']['wakeUs'], idleUs: number): number {
  let before = wakeUs[0]
  if (!before || idleUs <= before.idleUs) return before?.us ?? 0
  for (const after of wakeUs) {
    if (idleUs <= after.idleUs) {
      const share = Math.log(idleUs / before.idleUs) / Math.log(after.idleUs / before.idleUs)
      return before.us + share * (after.us - before.us)
    }
    before = after
  }
  return before.us
}
