import { join } from 'node:path'
import { runProgram } from './processes.ts'

export type Load = {
  readonly port: number
  readonly path: string
  readonly seconds: number
  readonly connections: number
  /** A script of `bench/measure/lua`. */
  readonly script?: string | undefined
}

/** What wrk counted. */
export type Loaded = {
  readonly requests: number
  readonly requestsPerSecond: number
  /** Responses with a status other than 2xx and 3xx. */
  readonly notOk: number
}

/**
 * Loads a server with as many requests as it can take: each connection sends its next request when it has the response
 * to the one before. Rejects where a connection failed or nothing was answered, because the figures would
 * then be of something else.
 */
export async function loadWithWrk({ port, path, seconds, connections, script }: Load): Promise<Loaded> {
  const args = ['-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '10s']
  if (script !== undefined) args.push('-s', join(import.meta.dirname, 'lua', script))
  const stdout = await runProgram('wrk', [...args, `http://127.0.0.1:${port}${path}`], (seconds + 20) * 1000)
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

/** V8 compiles by how often code has run: as many seconds would be less on a busy machine, and for a slow subject. */
const longestWarmupSeconds = 10

/** Loads a server, a second at a time, until it has answered so many requests. */
export async function warmUp(load: Omit<Load, 'seconds'>, requests: number): Promise<Loaded[]> {
  const loads: Loaded[] = []
  let answered = 0
  while (answered < requests && loads.length < longestWarmupSeconds) {
    const loaded = await loadWithWrk({ ...load, seconds: 1 })
    loads.push(loaded)
    answered += loaded.requests
  }
  return loads
}

function numberIn(text: string, pattern: RegExp): number {
  const found = pattern.exec(text)?.[1]
  if (found === undefined) throw new Error(`wrk wrote something else than expected:\n${text}`)
  return Number(found)
}
