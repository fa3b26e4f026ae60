import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Timing } from './measure/round.ts'

export type Options = Timing & {
  readonly rounds: number
  /** Names of scenarios, including `latency` and `memory`; undefined for all. */
  readonly scenarios: readonly string[] | undefined
  /** Names of subjects, or prefixes of names; undefined for all. */
  readonly subjects: readonly string[] | undefined
  readonly idleConnections: number
  readonly output: string
}

export const usage = `npm run bench -- [options]

  --scenario NAMES     pass, limited, limited-many, embedded, refused, body, tls, http2, rules, workers, latency,
                       memory
  --subjects NAMES     such as sluice,nginx
  --rounds N           rounds, each with all subjects in turn (5)
  --seconds N          time that a subject is measured in a round (3)
  --warmup N           requests that it answers before that (20000)
  --connections N      that wrk opens (64)
  --idle N             idle connections for memory (1000)
  --output FILE        the results as JSON (bench/results/latest.json)

Names are separated by commas. Ratios need both subjects in one run.
`

/** Throws an error that names unknown options. */
export function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      scenario: { type: 'string' },
      subjects: { type: 'string' },
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '3' },
      warmup: { type: 'string', default: '20000' },
      connections: { type: 'string', default: '64' },
      idle: { type: 'string', default: '1000' },
      output: { type: 'string', default: join(import.meta.dirname, 'results/latest.json') },
    },
  })
  return {
    scenarios: values.scenario?.split(','),
    subjects: values.subjects?.split(','),
    rounds: count('rounds', values.rounds, 100),
    seconds: count('seconds', values.seconds, 600),
    warmupRequests: count('warmup', values.warmup, 1_000_000),
    connections: count('connections', values.connections, 4_000),
    idleConnections: count('idle', values.idle, 8_000),
    output: values.output,
  }
}

function count(name: string, text: string, most: number): number {
  const number = Number(text)
  if (!Number.isInteger(number) || number < 1 || number > most)
    throw new Error(`--${name} ${text}: needs a whole number from 1 to ${most}`)
  return number
}
