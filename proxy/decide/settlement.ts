import type { Limiter, PolicyState, Reservation } from '../limiter/limiter.ts'
import type { Policy, StatusRange } from '../policy.ts'
import type { FailureKind } from '../upstream/failure.ts'
import type { ResponseHead } from '../upstream/response-head.ts'
import { createCostReader, unitsFrom, type CostReader } from './cost-reader.ts'
import type { LimitHeaders } from './limit-headers/limit-headers.ts'

/** Failures after which the backend cannot have seen the request. */
const unsent: ReadonlySet<FailureKind> = new Set(['refused', 'connect-timeout', 'busy', 'local-limit'])

/**
 * Settles what was reserved for one request, each reservation once, as soon as what the request has cost is known: by the
 * status code, a header or the body of the response, or by its end where requests in flight are counted. What is never
 * known, such as after a failure of the backend, stays as it was reserved.
 */
export class Settlement {
  readonly #limiter: Pick<Limiter, 'settle'>
  readonly #limitHeaders: LimitHeaders
  readonly #onUnreadable: (policy: Policy) => void
  #states: readonly PolicyState[]
  /** Those of requests in flight, until the request is over. */
  #inFlight: Reservation[] = []
  #open: Reservation[] = []
  #readers: { readonly reservation: Reservation; readonly reader: CostReader }[] = []

  /** @param onUnreadable called where a response does not say what its request has cost */
  constructor(
    limiter: Pick<Limiter, 'settle'>,
    states: readonly PolicyState[],
    limitHeaders: LimitHeaders,
    onUnreadable: (policy: Policy) => void,
  ) {
    this.#limiter = limiter
    this.#states = states
    this.#limitHeaders = limitHeaders
    this.#onUnreadable = onUnreadable
    for (const { policy, reservation } of states) {
      if (!reservation) continue
      if (policy.algorithm === 'concurrency') this.#inFlight.push(reservation)
      else this.#open.push(reservation)
    }
  }

  /** The headers that tell what is left, by what is settled so far. */
  get responseHeaders(): string[] {
    return this.#limitHeaders(this.#states)
  }

  /** Whether something counts for as long as the request is in flight. */
  get lasts(): boolean {
    return this.#inFlight.length > 0
  }

  /** Whether the body of the response is to say what the request has cost. */
  get readsBody(): boolean {
    return this.#open.some(({ charge }) => charge.policy.cost?.settle?.kind === 'json')
  }

  /** The backend responds. Returns the response as the client is to get it. */
  onHead(head: ResponseHead): ResponseHead {
    const hidden = new Set<string>()
    for (const reservation of this.#open.splice(0)) {
      const { countStatus, cost } = reservation.charge.policy
      const { settle: source } = cost ?? {}
      if (source?.kind === 'header' && source.hide) hidden.add(source.name)
      if (countStatus && !isIn(countStatus, head.status)) this.#settle(reservation, 0)
      else if (source?.kind === 'header') this.#settleBy(reservation, unitsFrom(head.fields, source.name))
      else if (source) {
        const reader = createCostReader(source, head.fields)
        if (reader) this.#readers.push({ reservation, reader })
        else this.#settleBy(reservation, undefined)
      } else this.#settle(reservation, reservation.units)
    }
    if (hidden.size === 0) return head
    return { ...head, fields: head.fields.filter((_, i) => !hidden.has(head.fields[i - (i % 2)] ?? '')) }
  }

  onBody(chunk: Buffer): void {
    for (const { reader } of this.#readers) reader.push(chunk)
  }

  /** All of the response has come, however long the client takes to read it. */
  onEnd(): void {
    for (const { reservation, reader } of this.#readers.splice(0)) this.#settleBy(reservation, reader.units)
  }

  /** The request failed at the backend. */
  onFailure(kind: FailureKind): void {
    if (unsent.has(kind)) this.cancel()
  }

  /** The backend will not see the request: everything is given back. */
  cancel(): void {
    for (const reservation of this.#open.splice(0)) this.#settle(reservation, 0)
    this.finish()
  }

  /** The request is over, and all of the response that is still to come is not waited for. */
  finish(): void {
    this.onEnd()
    this.#open = []
    for (const reservation of this.#inFlight.splice(0)) this.#limiter.settle(reservation, 0)
  }

  /** `units` is undefined where the response does not say. */
  #settleBy(reservation: Reservation, units: number | undefined): void {
    const { policy } = reservation.charge
    if (units === undefined) this.#onUnreadable(policy)
    // What costs more than the quota uses it up.
    this.#settle(reservation, Math.min(units ?? reservation.units, policy.quota))
  }

  #settle(reservation: Reservation, costUnits: number): void {
    this.#limiter.settle(reservation, costUnits)
    const givenBack = reservation.units - costUnits
    if (givenBack === 0) return
    this.#states = this.#states.map((state) =>
      state.reservation === reservation ? stateAfter(state, givenBack) : state,
    )
  }
}

function stateAfter(state: PolicyState, givenBack: number): PolicyState {
  const { policy } = state
  const remaining = Math.max(0, Math.min(policy.quota, state.remaining + givenBack))
  return { ...state, remaining, resetMs: remaining === policy.quota ? policy.windowMs : state.resetMs }
}

function isIn(ranges: readonly StatusRange[], status: number): boolean {
  return ranges.some(({ first, last }) => first <= status && status <= last)
}
