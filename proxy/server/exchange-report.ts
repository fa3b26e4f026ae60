import type { ErrorReply } from '../../shared/error-replies.ts'
import type { ClientRequest } from '../http/message/client-request.ts'
import { isHashedKey, mayHashAddress } from '../limits/keys/partition-key.ts'
import { oneStateEach } from '../limits/replies.ts'
import type { Denial } from '../limits/clients/lists/client-lists.ts'
import { chargesOfStates, type Charge, type Decision } from '../limits/limiter.ts'
import { overRouteOf, type Policy } from '../policy.ts'
import type { RequestContext } from '../limits/verdict.ts'
import type { Peer } from '../request/addresses/client-address.ts'
import type { Access, LoggedRequest } from '../telemetry/access-log.ts'
import type { ClientListName, DeviceOutcome, Rejection, Telemetry } from '../telemetry/telemetry.ts'
import type { RequestTrace } from '../telemetry/tracing/tracing.ts'
import type { HandlerOptions } from './handler-options.ts'

type ReportOptions = Pick<
  HandlerOptions,
  'telemetry' | 'tracing' | 'throttledClients' | 'onRejected' | 'onRefused' | 'onFinished' | 'now'
>

/** The facts about the request that are known so far. */
type ReportedRequest = Pick<RequestContext, 'request' | 'head' | 'clientAddress'>

/** Reports one request to metrics, logs and traces. Each method reports an event. */
export class ExchangeReport {
  readonly #options: ReportOptions
  readonly #startedMs: number
  /** The trace; undefined without tracing. */
  readonly trace: RequestTrace | undefined
  readonly #request: ReportedRequest
  requestId = ''
  /** The path of a request with a rejected head, as it would be forwarded; empty if it is unknown. */
  rejectedPath = ''
  /** The name of the route that the request took. */
  route: string | undefined
  /** The name of the rule that sent the request there, because it is over the rule's limit. */
  routedBy: string | undefined
  #delayedSinceMs: number | undefined
  #delayedMs: number | undefined
  #refusedBy: Policy | undefined
  /** The partition key of the client under the rule whose limit it exceeds, or under which it is banned. */
  #partitionKey: string | undefined
  #isAddressInKey = false
  #rejected: string | undefined
  #shadowRefusals: string[] | undefined
  #device: DeviceOutcome | undefined
  #plan: string | undefined
  /** The list that decided about the request. */
  #list: ClientListName | undefined
  /** The list that denied the request: `denyList`, one of its files, or `crowdsec`. */
  #deniedBy: string | undefined

  constructor(options: ReportOptions, about: ReportedRequest) {
    this.#options = options
    this.#request = about
    this.#startedMs = options.now()
    this.trace = options.tracing?.begin(about.request)
  }

  listed(list: ClientListName): void {
    this.#list = list
    this.#options.telemetry.listed(list)
  }

  denied({ list }: Denial): void {
    this.listed('deny')
    this.#deniedBy = list
    this.#options.telemetry.denied(list)
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
    const { onRefused, onFinished } = this.#options
    if (onRefused || onFinished || this.trace) this.#nameClient(chargeOverLimit(decision, charges))
    this.#options.throttledClients.record(charges, decision)
  }

  /** Called when rules with `device` have recognized the device or not. The logs get the first outcome. */
  devicesRead(charges: readonly Charge[]): void {
    const reported = new Set<string>()
    for (const { policy, device, isExtra } of charges) {
      if (!device || isExtra || reported.has(policy.name)) continue
      reported.add(policy.name)
      this.#options.telemetry.deviceRead(policy, device.outcome)
      this.#device ??= device.outcome
    }
  }

  /** Called when the request begins to wait for its turn. */
  delayStarted(): void {
    this.#delayedSinceMs = this.#options.now()
  }

  /** Called when the delay has ended: the turn has come, or the client has disconnected. */
  delayEnded(): void {
    if (this.#delayedSinceMs !== undefined) this.#delayedMs = this.#options.now() - this.#delayedSinceMs
  }

  /** Called when a rule has read the client's plan. The logs get the first plan. */
  planRead(policy: Policy, plan: string): void {
    this.#options.telemetry.planRead(policy, plan)
    this.#plan ??= plan
  }

  /**
   * @param refusedBy undefined if the limiter was unavailable, or the client is banned under all rules
   * @param bannedKey the partition key that is banned; undefined without a ban, or for a ban of the address
   */
  refused(status: number, refusedBy: Policy | undefined, bannedKey?: string): void {
    this.#refusedBy = refusedBy
    if (bannedKey !== undefined) this.#nameClient({ policy: refusedBy, partitionKey: bannedKey })
    this.#options.onRefused?.({ ...this.#loggedRequest, status, policy: refusedBy?.name })
  }

  rejected(rejection: Rejection, { status }: ErrorReply, reason: string): void {
    this.#rejected = reason
    this.#options.telemetry.requestRejected(rejection)
    this.#options.onRejected(this.requestId, status, reason)
  }

  /**
   * @param nowMs monotonic milliseconds
   * @param isIncomplete the response was cut off after its head
   */
  finished(status: number, nowMs: number, isIncomplete: boolean): void {
    const { telemetry, onFinished } = this.#options
    const durationMs = nowMs - this.#startedMs
    telemetry.requestFinished(status, durationMs)
    if (!onFinished && !this.trace) return
    const access: Access = {
      ...this.#loggedRequest,
      status,
      isIncomplete,
      durationMs,
      route: this.route,
      routedBy: this.routedBy,
      delayedMs: this.#delayedMs,
      refusedBy: this.#refusedBy?.name,
      list: this.#list,
      deniedBy: this.#deniedBy,
      rejected: this.#rejected,
      wouldBeRefusedBy: this.#shadowRefusals,
    }
    onFinished?.(access)
    this.trace?.finished(access)
  }

  /** Names the client for the logs, once. @param client without a policy if it is banned under all rules, because the key may be of any */
  #nameClient(
    client: { readonly policy: Policy | undefined; readonly partitionKey: string } | undefined,
  ): void {
    if (!client || this.#partitionKey !== undefined) return
    this.#partitionKey = client.partitionKey
    this.#isAddressInKey = client.policy === undefined || mayHashAddress(client.policy)
  }

  get #loggedRequest(): LoggedRequest {
    const { request, head, clientAddress } = this.#request
    return {
      requestId: this.requestId,
      method: head?.method ?? request.method,
      path: head?.target.path ?? this.rejectedPath,
      clientAddress: clientAddress.address,
      counter: hashedOnly(this.#partitionKey),
      isAddressInCounter: this.#isAddressInKey,
      device: this.#device,
      plan: this.#plan,
    }
  }
}

const requestIdSyntax = /^[A-Za-z0-9._:/=+-]{1,128}$/

/** Returns the `X-Request-Id` of a trusted proxy, so that a request has the same id in all logs; undefined if a new id is needed. */
export function givenRequestId({ headers }: ClientRequest, { trusted }: Peer): string | undefined {
  const given = trusted ? headers['x-request-id'] : undefined
  return typeof given === 'string' && requestIdSyntax.test(given) ? given : undefined
}

/** Returns the key if it is a hash. Addresses are logged as `clientAddress`; networks and `global` do not identify a client. */
function hashedOnly(partitionKey: string | undefined): string | undefined {
  return partitionKey !== undefined && isHashedKey(partitionKey) ? partitionKey : undefined
}

/**
 * Returns the charge of the client under the policy that refused the request, otherwise under the first policy whose limit it exceeds.
 *
 * @internal exported for tests
 */
export function chargeOverLimit(decision: Decision, charges: readonly Charge[]): Charge | undefined {
  if (decision.outcome === 'unavailable') return undefined
  const refusedBy = decision.outcome === 'refused' ? decision.refusedBy.name : undefined
  const at = decision.states.findIndex(
    ({ policy, exceeded }) => exceeded && (refusedBy === undefined || policy.name === refusedBy),
  )
  return at === -1 ? undefined : chargesOfStates(charges, decision.states)[at]
}

/**
 * Reports the outcome of each policy of a request.
 *
 * @internal exported for tests
 * @returns the names of the shadow policies that would have refused the request; undefined if there are none
 */
export function reportDecision(
  telemetry: Pick<Telemetry, 'decided' | 'nearLimit'>,
  decision: Decision,
  charges: readonly Charge[],
): string[] | undefined {
  let shadows: string[] | undefined
  switch (decision.outcome) {
    case 'allowed':
      for (const { policy, exceeded, remaining } of oneStateEach(decision.states)) {
        if (exceeded && overRouteOf(policy) === undefined) (shadows ??= []).push(policy.name)
        else if (!exceeded && remaining * 5 < policy.quota) telemetry.nearLimit(policy)
        telemetry.decided(
          policy,
          exceeded ? overOutcome(policy) : decision.withoutStore ? 'local' : 'allowed',
        )
      }
      if (decision.states.length < charges.length) reportUncounted(telemetry, decision, charges)
      break
    case 'refused':
      telemetry.decided(decision.refusedBy, 'refused')
      break
    case 'unavailable':
      for (const policy of policiesOf(charges)) telemetry.decided(policy, 'unavailable')
  }
  return shadows
}

function overOutcome(policy: Policy): 'shadow' | 'routed' {
  return overRouteOf(policy) === undefined ? 'shadow' : 'routed'
}

/** Policies without a state allowed the request without counting it. */
function reportUncounted(
  telemetry: Pick<Telemetry, 'decided'>,
  { states }: Decision & { outcome: 'allowed' },
  charges: readonly Charge[],
): void {
  const counted = new Set<Policy>(states.map(({ policy }) => policy))
  for (const policy of policiesOf(charges)) if (!counted.has(policy)) telemetry.decided(policy, 'open')
}

function policiesOf(charges: readonly Charge[]): ReadonlySet<Policy> {
  return new Set(charges.map(({ policy }) => policy))
}
