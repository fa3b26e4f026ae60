import { countsInFlight, stateWithout } from '../algorithms/registry.ts'
import type { Limiter, PolicyState, Reservation } from '../limiter.ts'
import {
  includesStatus,
  readsResponseBody,
  singleSources,
  type CostSource,
  type Policy,
  type SingleCostSource,
  type StatusRange,
} from '../../policy.ts'
import { singleParts } from '../../policy/partition.ts'
import { hidesOutcome, tellsOutcome, type OutcomeSource } from '../../request/outcome.ts'
import type { UnreadCost } from '../../telemetry/telemetry.ts'
import { createBodyReader, unitsFrom, type BodyReader } from './body-reader.ts'
import { pathOf, pathsIn, unitsBy, type Units } from './cost-source.ts'
import { tokensOf } from './estimate.ts'
import type { LimitHeaders } from '../replies.ts'

/** The status and fields of a response: name, value, name, value…; names in lower case. Without `framing`, the response has no body. */
type ResponseHead = {
  readonly status: number
  readonly fields: string[]
  readonly framing?: { readonly kind: 'none' | 'length' | 'chunked' | 'until-close' }
}

export type SettlementOptions = {
  readonly limiter: Pick<Limiter, 'settle'>
  readonly limitHeaders: LimitHeaders
  /** Names of headers that are not forwarded to the client. */
  readonly hidden?: readonly string[]
  /** Called if a response does not state the cost of its request. */
  readonly onUnread: (policy: Policy, reason: UnreadCost) => void
  /** Bytes of the request's body that were sent to the backend. */
  readonly requestBytes: () => number
  /** Without headers in a replay, as logs have none. */
  readonly request: OutcomeSource
}

/**
 * Settles each reservation of a request once, as soon as the cost is known: from the status code, a header, the body or a trailer of the
 * response, or from the end of the request if the rule counts requests in flight. If the cost never becomes known, for example after a
 * failure of the backend, the reserved units stay charged, or an estimate if the rule asks for it.
 */
export class Settlement {
  readonly #options: SettlementOptions
  #states: readonly PolicyState[]
  /** Reservations of rules that count requests in flight, until the request is over. */
  #inFlight: Reservation[] = []
  #open: Reservation[] = []
  /** Reservations that the body or the trailers of the response will settle. */
  #waiting: Reservation[] = []
  #head: ResponseHead | undefined
  /** Name, value, name, value…; names in lower case. */
  #trailers: readonly string[] = []
  /** Names of headers that are not forwarded to the client. */
  readonly #hidden: ReadonlySet<string>
  #body: BodyReader | undefined
  /** Some of the body has arrived. */
  #hasBody = false

  constructor(options: SettlementOptions, states: readonly PolicyState[]) {
    this.#options = options
    this.#states = states
    this.#hidden = new Set(options.hidden)
    for (const { policy, reservation } of states) {
      if (!reservation) continue
      if (countsInFlight(policy)) this.#inFlight.push(reservation)
      else this.#open.push(reservation)
    }
  }

  /** The headers with the remaining quota, as settled so far. */
  get responseHeaders(): string[] {
    return this.#options.limitHeaders(this.#states)
  }

  /** Call when the request has waited for its turn. @param states after the wait */
  waited(states: readonly PolicyState[]): void {
    this.#states = states
  }

  /** Whether a reservation counts for as long as the request is in flight. */
  get lasts(): boolean {
    return this.#inFlight.length > 0
  }

  /** Whether the cost is read from the body of the response. */
  get readsBody(): boolean {
    return this.#open.some(({ charge }) => readsResponseBody(charge.policy))
  }

  /** Whether a rule counts responses with the status 200. A partial response has another one, 206 or 416. */
  get countsOk(): boolean {
    return this.#open.some(
      ({ charge: { policy } }) => policy.countStatus && includesStatus(policy.countStatus, 200),
    )
  }

  /** Called when the backend responds. Returns the response without the headers to hide from the client. */
  onHead<Head extends ResponseHead>(head: Head): Head {
    this.#head = head
    for (const reservation of this.#open.splice(0)) {
      const { countStatus, cost } = reservation.charge.policy
      const { settle: source } = cost ?? {}
      if (countStatus && !this.#mayBeIn(countStatus, head.status, reservation)) this.#settle(reservation, 0)
      else if (source) this.#settleByHead(reservation, source, head)
      else this.#settle(reservation, reservation.units)
    }
    if (this.#waiting.length > 0) this.#openBody(head)
    return this.#hidden.size === 0 ? head : { ...head, fields: this.#withoutHidden(head.fields) }
  }

  /** Under a rule by account, calls whose outcome the status does not say count: any of them may be a failed sign-in. */
  #mayBeIn(ranges: readonly StatusRange[], status: number, { charge }: Reservation): boolean {
    const { request } = this.#options
    return (
      includesStatus(ranges, status) ||
      charge.isBatch === true ||
      hidesOutcome(status, request.method) ||
      (countsByAccount(charge.policy) && !tellsOutcome(status, request))
    )
  }

  /** Returns the trailers without those to hide from the client: name, value, name, value…; names in lower case. */
  onTrailers(fields: readonly string[]): readonly string[] {
    this.#trailers = fields
    return this.#hidden.size === 0 ? fields : this.#withoutHidden(fields)
  }

  #withoutHidden(fields: readonly string[]): string[] {
    return fields.filter((_, i) => !this.#hidden.has(fields[i - (i % 2)] ?? ''))
  }

  onBody(chunk: Buffer): void {
    this.#hasBody = true
    this.#body?.push(chunk)
  }

  /** Called when the whole response has arrived, even if the client has not read all of it. */
  onEnd(): void {
    for (const reservation of this.#waiting.splice(0)) this.#settleAtEnd(reservation, false)
    this.#body = undefined
  }

  /** Called if the backend will not get the request. Refunds everything. */
  cancel(): void {
    for (const reservation of this.#open.splice(0)) this.#settle(reservation, 0)
    this.finish()
  }

  /** Called when the request is over. The rest of the response, if any, is ignored. */
  finish(): void {
    for (const reservation of this.#waiting.splice(0)) this.#settleAtEnd(reservation, true)
    this.#body = undefined
    for (const reservation of this.#open.splice(0)) this.#settleUnanswered(reservation)
    for (const reservation of this.#inFlight.splice(0)) this.#options.limiter.settle(reservation, 0)
  }

  #settleByHead(reservation: Reservation, source: CostSource, head: ResponseHead): void {
    const { policy } = reservation.charge
    const otherwise = mayHaveTrailers(head) ? 'later' : undefined
    const units = unitsBy(source, (single) =>
      single.kind === 'header' ? (unitsFrom(head.fields, single.name) ?? otherwise) : 'later',
    )
    if (units === 'later' || (units === undefined && estimates(policy))) this.#waiting.push(reservation)
    else if (units === undefined) this.#settleUnread(reservation, 'missing')
    else this.#settleFor(reservation, units)
  }

  #openBody(head: ResponseHead): void {
    // There is nothing to read, and a 304 need not have the `Content-Type` of the body that it stands for.
    if (head.framing?.kind === 'none') return
    const read = this.#waiting.map(({ charge }) => charge.policy).filter(readsResponseBody)
    if (read.length === 0) return
    const sources = read.flatMap(({ cost }) => cost?.settle ?? [])
    const body = createBodyReader(pathsIn(sources), head.fields, read.some(estimates))
    this.#body = body
    if (!body.unread) return
    // The cost can only come from the length of the body or from a trailer.
    for (const reservation of this.#waiting.splice(0)) {
      const { policy } = reservation.charge
      if (estimates(policy) || (mayHaveTrailers(head) && readsHeader(policy))) this.#waiting.push(reservation)
      else this.#settleAtEnd(reservation, false)
    }
  }

  /**
   * Settles by the part of the response that has arrived.
   *
   * @param isCut the response is incomplete
   */
  #settleAtEnd(reservation: Reservation, isCut: boolean): void {
    const { policy } = reservation.charge
    const source = policy.cost?.settle
    if (!source) return
    const body = readsResponseBody(policy) ? this.#body : undefined
    const { fields = [] } = this.#head ?? {}
    const read = (single: SingleCostSource): Units =>
      single.kind === 'header'
        ? (unitsFrom(fields, single.name) ?? unitsFrom(this.#trailers, single.name))
        : body?.valueAt(pathOf(single))
    const units = unitsBy(source, read)
    const isWhole = body?.isWhole ?? !isCut
    const isCertain = isWhole && (body?.isCostFinal || !isCut)
    if (typeof units === 'number' && isCertain) return this.#settleFor(reservation, units)
    const fault = isCut ? 'cut' : 'json'
    this.#settleUnread(
      reservation,
      body?.unread ?? (isCut || (!isWhole && this.#hasBody) ? fault : 'missing'),
      typeof units === 'number' ? units : 0,
    )
  }

  /** Called if the client disconnected before the response began, or if there will be no response. */
  #settleUnanswered(reservation: Reservation): void {
    if (reservation.charge.policy.cost?.settle) this.#settleUnread(reservation, 'cut')
  }

  /**
   * Settles a request of unknown cost. It counts at least the reserved units, so that no client gains from hiding the cost.
   *
   * @param minUnits units that are certain
   */
  #settleUnread(reservation: Reservation, reason: UnreadCost, minUnits = 0): void {
    const { policy } = reservation.charge
    // Error responses need not state a cost, because nothing was generated for them.
    const isError = (this.#head?.status ?? 0) >= 400
    const estimate = estimates(policy) && !isError ? this.#estimatedUnits() : 0
    this.#options.onUnread(policy, isError && reason !== 'cut' ? 'status' : reason)
    this.#settleFor(reservation, Math.max(reservation.units, minUnits, estimate))
  }

  #estimatedUnits(): number {
    return tokensOf(this.#options.requestBytes()) + (this.#body?.tokens ?? 0)
  }

  /** A cost above the quota uses it up. */
  #settleFor(reservation: Reservation, units: number): void {
    this.#settle(reservation, Math.min(units, reservation.charge.policy.quota))
  }

  #settle(reservation: Reservation, costUnits: number): void {
    this.#options.limiter.settle(reservation, costUnits)
    const givenBack = reservation.units - costUnits
    if (givenBack === 0) return
    this.#states = this.#states.map((state) =>
      state.reservation === reservation ? stateAfter(state, givenBack) : state,
    )
  }
}

/** Whether the head leaves the body's end open: chunked, or HTTP/2 without `Content-Length`. */
function mayHaveTrailers({ framing }: ResponseHead): boolean {
  return framing?.kind === 'chunked' || framing?.kind === 'until-close'
}

function readsHeader({ cost }: Policy): boolean {
  return cost?.settle !== undefined && singleSources(cost.settle).some(({ kind }) => kind === 'header')
}

function estimates({ cost }: Policy): boolean {
  return cost?.otherwise === 'estimate'
}

function stateAfter(state: PolicyState, givenBack: number): PolicyState {
  const { policy } = state
  const after = stateWithout(policy, givenBack, state)
  const remaining = Math.max(0, Math.min(policy.quota, after.remaining))
  const isUnused = remaining === policy.quota && !policy.calendar
  return { ...state, remaining, resetMs: isUnused ? policy.windowMs : after.resetMs }
}

function countsByAccount({ device, partition }: Policy): boolean {
  return device !== undefined || singleParts(partition).some(({ kind }) => kind === 'body')
}
