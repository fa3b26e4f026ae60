import type { ErrorReply } from '../../shared/error-replies.ts'
import { reportDecision } from '../limits/decision-report.ts'
import type { ClientRequest } from '../http/message/messages.ts'
import type { Charge, Decision } from '../limits/limiter.ts'
import type { Policy } from '../policy.ts'
import { unknownClient, type ClientAddress } from '../request/addresses/client-address.ts'
import type { Access, LoggedRequest } from '../telemetry/access-log.ts'
import type { ClientListName, Rejection } from '../telemetry/telemetry.ts'
import type { RequestTrace } from '../telemetry/tracing/tracing.ts'
import type { HandlerOptions } from './handler-options.ts'

type ReportOptions = Pick<
  HandlerOptions,
  'telemetry' | 'tracing' | 'throttledClients' | 'onRejected' | 'onRefused' | 'onFinished' | 'now'
>

/** What metrics and logs are told of one request. */
export class ExchangeReport {
  readonly #options: ReportOptions
  readonly #startedMs: number
  /** Undefined without tracing. */
  readonly trace: RequestTrace | undefined
  requestId = ''
  method: string
  /** The path as forwarded, as far as it is known. */
  path = ''
  /** The name of the route that it took. */
  route: string | undefined
  /** Whom the request counts as. */
  client: ClientAddress = unknownClient
  #refusedBy: Policy | undefined
  #rejected: string | undefined
  #shadowRefusals: string[] | undefined
  /** The list that decided about it. */
  #list: ClientListName | undefined

  constructor(options: ReportOptions, request: ClientRequest) {
    this.#options = options
    this.method = request.method
    this.#startedMs = options.now()
    this.trace = options.tracing?.begin(request)
  }

  listed(list: ClientListName): void {
    this.#list = list
    this.#options.telemetry.listed(list)
  }

  asked(charges: readonly Charge[]): void {
    this.trace?.asked([...new Set(charges.map(({ policy }) => policy.name))])
  }

  decided(decision: Decision, charges: readonly Charge[]): void {
    this.trace?.decided({
      outcome: decision.outcome,
      refusedBy: decision.outcome === 'refused' ? decision.refusedBy.name : undefined,
      withoutStore: decision.outcome === 'allowed' && decision.withoutStore,
    })
    this.#shadowRefusals = reportDecision(this.#options.telemetry, decision, charges)
    this.#options.throttledClients.note(charges, decision)
  }

  /** @param refusedBy undefined where the limiter was unavailable */
  refused(status: number, refusedBy: Policy | undefined): void {
    this.#refusedBy = refusedBy
    this.#options.onRefused?.({ ...this.#named, status, policy: refusedBy?.name })
  }

  rejected(reason: Rejection, { status }: ErrorReply, why: string): void {
    this.#rejected = why
    this.#options.telemetry.requestRejected(reason)
    this.#options.onRejected(this.requestId, status, why)
  }

  /** @param nowMs monotonic */
  finished(status: number, nowMs: number): void {
    const { telemetry, onFinished } = this.#options
    const durationMs = nowMs - this.#startedMs
    telemetry.requestFinished(status, durationMs)
    if (!onFinished && !this.trace) return
    const access: Access = {
      ...this.#named,
      status,
      durationMs,
      route: this.route,
      refusedBy: this.#refusedBy?.name,
      list: this.#list,
      rejected: this.#rejected,
      wouldBeRefusedBy: this.#shadowRefusals,
    }
    onFinished?.(access)
    this.trace?.finished(access)
  }

  get #named(): LoggedRequest {
    return {
      requestId: this.requestId,
      method: this.method,
      path: this.path,
      clientAddress: this.client.address,
    }
  }
}
