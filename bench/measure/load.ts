import { join } from 'node:path'
import type { Protocol } from '../scenarios.ts'
import { runProgram } from './processes.ts'

export type Load = {
  readonly port: number
  readonly path: string
  readonly seconds: number
  /** Each connection has one request at a time. HTTP/2 uses an eighth of the connections, with eight requests each. */
  readonly connections: number
  readonly protocol?: Protocol | undefined
  /** A script of `bench/measure/lua`. Not for HTTP/2. */
  readonly script?: string | undefined
}

/** The counts that wrk or h2load reports. */
export type Loaded = {
  readonly requests: number
  readonly requestsPerSecond: number
  /** Responses with a status other than 2xx and 3xx. */
  readonly notOk: number
}

/**
 * Loads a server with as many requests as it can take: each connection sends its next request when it has the response to the previous one.
 * Rejects if a connection failed or nothing was answered, because the figures would then not be comparable.
 */
export function load(how: Load): Promise<Loaded> {
  return how.protocol === 'h2' ? loadWithH2load(how) : loadWithWrk(how)
}

async function loadWithWrk(how: Load): Promise<Loaded> {
  const { port, path, seconds, connections, protocol = 'http', script } = how
  const args = ['-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '10s']
  if (script !== undefined) args.push('-s', join(import.meta.dirname, 'lua', script))
  const stdout = await runProgram(
    'wrk',
    [...args, `${protocol}://127.0.0.1:${port}${path}`],
    (seconds + 20) * 1000,
  )
  const errors = /Socket errors: .*/.exec(stdout)
  if (errors) throw new Error(`wrk, ${path}: ${errors[0]}`)
  const requests = numberIn(stdout, /(\d+) requests in /)
  if (requests === 0) throw new Error(`wrk, ${path}: nothing was answered`)
  return {
    requests,
    requestsPerSecond: numberIn(stdout, /Requests\/sec:\s+([\d.]+)/),
    notOk: Number(/Non-2xx or 3xx responses: (\d+)/.exec(stdout)?.[1] ?? 0),
  }
}

const STREAMS = 8

async function loadWithH2load({ port, path, seconds, connections }: Load): Promise<Loaded> {
  const clients = Math.max(1, Math.round(connections / STREAMS))
  const args = ['-t1', `-c${clients}`, `-m${STREAMS}`, `-D${seconds}`]
  const stdout = await runProgram(
    'h2load',
    [...args, `https://127.0.0.1:${port}${path}`],
    (seconds + 20) * 1000,
  )
  const requests = numberIn(stdout, /, (\d+) done, /)
  const lost = numberIn(stdout, /, (\d+) errored, /)
  if (requests === 0 || lost > 0) throw new Error(`h2load, ${path}:\n${stdout}`)
  return {
    requests,
    requestsPerSecond: numberIn(stdout, /, ([\d.]+) req\/s/),
    // h2load also counts the statuses of requests that have not ended yet.
    notOk: numberIn(stdout, /, (\d+) 4xx, /) + numberIn(stdout, /, (\d+) 5xx/),
  }
}

/**
 * Warm-up is counted in requests, because V8 compiles code by how often it has run: in a fixed time a busy machine or a slow subject would
 * run it less often. This is the limit.
 */
const maxWarmupSeconds = 10

/** Loads a server, a second at a time, until it has answered this many requests. */
export async function warmUp(how: Omit<Load, 'seconds'>, requests: number): Promise<Loaded[]> {
  const loads: Loaded[] = []
  let answered = 0
  while (answered < requests && loads.length < maxWarmupSeconds) {
    const loaded = await load({ ...how, seconds: 1 })
    loads.push(loaded)
    answered += loaded.requests
  }
  return loads
}

function numberIn(text: string, pattern: RegExp): number {
  const found = pattern.exec(text)?.[1]
  if (found === undefined) throw new Error(`the load's program wrote something else than expected:\n${text}`)
  return Number(found)
}
