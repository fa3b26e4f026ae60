import type { AccountOverrides } from './clients/lists/account-overrides.ts'
import type { ClientRequest } from '../http/message/client-request.ts'
import type { Policy } from '../policy.ts'
import type { AddressReader, ClientAddress, Peer } from '../request/addresses/client-address.ts'
import type { Geo } from '../request/addresses/geo/geo.ts'
import type { RejectedHead, RequestHead } from '../request/request-head.ts'
import type { UnreadKey } from '../telemetry/telemetry.ts'
import type { AppliedBan, ClientEntries } from './clients/client-entries.ts'
import type { ClientLists, Denial } from './clients/lists/client-lists.ts'
import type { Conditions } from './conditions/conditions.ts'
import type { SentBody } from './keys/body/body-values.ts'
import type { Devices } from './keys/devices/devices.ts'
import type { TokenReader } from './keys/tokens/token-reader.ts'
import type { Charge, Decision, Limiter } from './limiter.ts'
import type { RuleTable } from './rules/rule-table.ts'

/** The limits that requests are decided with, compiled from the settings. */
export type CompiledLimits = {
  readonly rules: RuleTable
  /** The rules for CORS preflights; undefined if `rules` applies to them too. */
  readonly preflightRules: RuleTable | undefined
  /** The client lists; undefined if all of them are empty. */
  readonly clientLists: ClientLists | undefined
  /** The overrides of accounts; undefined if there are none. */
  readonly accountOverrides: AccountOverrides | undefined
  /** The conditions; undefined if no rule has one. */
  readonly conditions?: Conditions | undefined
  readonly addresses: AddressReader
  /** Countries and autonomous systems; undefined without databases. */
  readonly geo?: Geo | undefined
  /** The known devices; undefined if no rule has `device`. */
  readonly devices: Devices | undefined
  /** A rule reads the body of requests, for its key or its devices. */
  readonly hasBodyRules: boolean
  /** A rule has other quotas for clients with a plan. */
  readonly hasPlans: boolean
}

/** The options of `decideRequest`: the compiled limits, the bans and overrides set at run time, and the counters. */
export type DecideOptions = CompiledLimits & {
  /** Bans and overrides that were set at run time. */
  readonly entries: Pick<ClientEntries, 'findAddressBan' | 'findKeyBan' | 'withOverrides'>
  /** The token reader; undefined if no rule counts by tokens. */
  readonly tokens: TokenReader | undefined
  /** Bodies can be read, and a rule reads its key, its devices or the units to reserve from them. */
  readonly readsBodies: boolean
  /** A read-only limiter explains a request without counting it. */
  readonly limiter: Pick<Limiter, 'decide'>
}

/**
 * A request to decide about, and the findings about it. `decideRequest` stores each finding here as soon as it has it, because the logs
 * need it even if the client disconnects during the decision.
 */
export type RequestContext = {
  readonly request: ClientRequest
  readonly peer: Peer
  /** The client has disconnected, or the request was answered: it must no longer be counted. */
  readonly isFinished: boolean
  /** Whether another proxy forwards the request if it is allowed, so that the gateway cannot answer in place of the backend. */
  readonly isForwardedByAnother: boolean
  readHead(): RequestHead | RejectedHead
  /**
   * Sets the units of the charges from the request's body. `busy`: there is no memory to read it. `gone`: the request was answered, or its
   * client disconnected, before the body had arrived.
   */
  readUnits(charges: readonly Charge[]): RequestedCharges | Promise<RequestedCharges>
  /** The part of the request's body that rules read; the same at each call. `gone`: as for `readUnits`. */
  readBody(): SentBody | 'gone' | Promise<SentBody | 'gone'>
  /** Called if a request counts by address under a policy, because its body does not identify the client with certainty. */
  onUnreadKey(policy: Policy, reason: UnreadKey): void
  /** Called for each applying policy with plans. `plan` is the client's plan, `none` or `unknown`. */
  onPlan(policy: Policy, plan: string): void
  /** Called before the limiter decides. */
  onAsk(charges: readonly Charge[]): void
  clientAddress: ClientAddress
  /** The request's head; undefined if the request was rejected. */
  head: RequestHead | undefined
  /** The policies of the matching rules. */
  matched: readonly Policy[]
  /** The matching policies that apply to the client, after the table's exemptions and overrides, but before conditions. */
  applying: readonly Policy[]
  /** The charges; once no ban was found, with the overrides of accounts, and with those that were set at run time. */
  charges: readonly Charge[]
}

export type RequestedCharges = readonly Charge[] | 'busy' | 'gone'

/**
 * The outcome of a request.
 *
 * - `rejected`: it is malformed, too large or not supported
 * - `answered`: a successful OPTIONS that is not for the backend
 * - `denied`: the client is in `denyList` or one of its files, or is banned by CrowdSec
 * - `banned`: the client is banned
 * - `forward`: no rule counts it
 * - `busy`: there is no memory to read its body, which identifies the client or states how much to reserve
 * - `gone`: its client disconnected, or it was answered, before it was counted
 * - `allowed`, `refused`, `unavailable`: the limiter's decision
 */
export type Verdict =
  | ({ readonly outcome: 'rejected' } & RejectedHead)
  | { readonly outcome: 'denied'; readonly by: Denial }
  | { readonly outcome: 'answered' | 'forward' | 'busy' | 'gone' }
  | { readonly outcome: 'banned'; readonly ban: AppliedBan }
  | Decision
