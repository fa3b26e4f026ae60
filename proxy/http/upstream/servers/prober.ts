import { afterInput } from '../../../../shared/after-input.ts'
import type { Probe } from './probe.ts'
import type { Server } from './server.ts'

export type ProberOptions = {
  readonly probe: Probe
  /** Time between the starts of two probes of a server, plus or minus 10 %. */
  readonly everyMs: number
  /** How many probes in a row must fail before a server is taken out of use. */
  readonly fails: number
  /** How many probes in a row must pass before the server is used again. */
  readonly passes: number
  /** Called after each probe. */
  readonly onProbed: (hasPassed: boolean) => void
  /** A random number from 0 to below 1. */
  readonly random: () => number
  /** Monotonic milliseconds. */
  readonly now: () => number
}

/** How long a probe may take at most, unless the next one is due earlier. */
const MAX_PROBE_MS = 5_000

/** Probes each server of a group by itself. The first probes are spread over the interval, so that not all begin at once. */
export class Prober {
  readonly #options: ProberOptions
  readonly #probed = new Map<Server, ProbedServer>()

  constructor(options: ProberOptions) {
    this.#options = options
  }

  /** Probes these servers from now on. */
  use(servers: readonly Server[]): void {
    for (const [server, probed] of this.#probed) {
      if (servers.includes(server)) continue
      probed.stop()
      this.#probed.delete(server)
    }
    for (const server of servers) {
      if (!this.#probed.has(server)) this.#probed.set(server, new ProbedServer(server, this.#options))
    }
  }

  stop(): void {
    this.use([])
  }
}

/** The probes of one server, one at a time. */
class ProbedServer {
  readonly #server: Server
  readonly #options: ProberOptions
  #timer: NodeJS.Timeout | undefined
  #giveUp: AbortController | undefined
  #isStopped = false
  /** How many probes in a row have ended like the last one. */
  #inRow = 0
  #hasPassed = true

  constructor(server: Server, options: ProberOptions) {
    this.#server = server
    this.#options = options
    this.#wait(options.random() * options.everyMs)
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
    this.#giveUp?.abort()
  }

  #wait(ms: number): void {
    this.#timer = setTimeout(() => void this.#run(), ms).unref()
  }

  async #run(): Promise<void> {
    const { probe, everyMs, random, now } = this.#options
    const startedMs = now()
    const giveUp = new AbortController()
    this.#giveUp = giveUp
    const limit = setTimeout(() => afterInput(() => giveUp.abort()), Math.min(everyMs, MAX_PROBE_MS)).unref()
    const problem = await probe(this.#server.place, giveUp.signal)
    clearTimeout(limit)
    if (this.#isStopped) return
    this.#record(problem)
    this.#wait(Math.max(0, everyMs * (0.9 + random() / 5) - (now() - startedMs)))
  }

  #record(problem: string | undefined): void {
    const { fails, passes, onProbed } = this.#options
    const hasPassed = problem === undefined
    onProbed(hasPassed)
    this.#inRow = hasPassed === this.#hasPassed ? this.#inRow + 1 : 1
    this.#hasPassed = hasPassed
    if (hasPassed && this.#inRow >= passes) this.#server.markHealthy()
    if (!hasPassed && this.#inRow >= fails) this.#server.markUnhealthy(problem)
  }
}
