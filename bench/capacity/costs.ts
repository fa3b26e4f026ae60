import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The algorithms whose costs are measured. `concurrency` counts a request twice: when it begins and when it ends. */
export const measuredAlgorithms = ['fixed', 'sliding', 'token-bucket'] as const
export type MeasuredAlgorithm = (typeof measuredAlgorithms)[number]

/** The cost of a decision on the machine where `npm run capacity -- --measure` ran. */
export type Costs = {
  readonly machine: Readonly<Record<'date' | 'processor' | 'node' | 'redis', string>>
  /** Microseconds of CPU of a Redis process. */
  readonly redis: {
    /** The cost of waking up after an idle time, in ascending order: a core that sleeps longer takes longer to wake up. */
    readonly wakeUs: readonly { readonly idleUs: number; readonly us: number }[]
    /** The fixed cost of a command: to read it, to start the script, and to write the reply. */
    readonly commandUs: Readonly<Record<MeasuredAlgorithm, number>>
    /** The cost of a charge of one rule. */
    readonly chargeUs: Readonly<Record<MeasuredAlgorithm, number>>
  }
  /** Microseconds of CPU of a gateway's process. */
  readonly gateway: {
    /** The cost of a request and its response, counted in the process. */
    readonly requestUs: number
    /** The cost of sending a command and reading its reply. */
    readonly commandUs: number
    /** The cost of a decision within a command. */
    readonly decisionUs: number
  }
  /** Bytes of the Redis protocol, without TCP and TLS. */
  readonly network: Readonly<Record<'commandIn' | 'commandOut' | 'chargeIn' | 'chargeOut', number>>
  /** Bytes of Redis's memory for a client and rule with ten requests, including the expiry. */
  readonly clientBytes: Readonly<Record<MeasuredAlgorithm, number>>
}

const file = join(import.meta.dirname, 'costs.json')

export function readCosts(): Costs {
  return JSON.parse(readFileSync(file, 'utf8')) as Costs
}

export function writeCosts(costs: Costs): void {
  writeFileSync(file, `${JSON.stringify(costs, null, 2)}\n`)
}

/** The cost of waking up after a sleep of `idleUs`, interpolated between two measured points. */
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
