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

/** The inputs of `decideRequest`: the table of limits, clients that are banned or have a limit of their own, and the counters. */
export type DecisionTable = {
  readonly rules: RuleTable
  /** The same for preflights, where others than `rules` apply to them. */
  readonly preflightRules: RuleTable | undefined
  /** The client lists; undefined if none names a client. */
  readonly clientLists: ClientLists | undefined
  /** The overrides of accounts; undefined if there are none. */
  readonly accountOverrides: AccountOverrides | undefined
  /** The conditions; undefined if no rule has any. */
  readonly conditions?: Conditions | undefined
  readonly addresses: AddressReader
  /** Countries and autonomous systems; undefined without databases. */
  readonly geo?: Geo | undefined
  /** Bans and overrides that were set at run time. */
  readonly entries: Pick<ClientEntries, 'findAddressBan' | 'findKeyBan' | 'withOverrides'>
  /** The token reader; undefined if no rule counts by tokens. */
  readonly tokens: TokenReader | undefined
  /** The known devices; undefined if no rule has `device`. */
  readonly devices: Devices | undefined
  /** A rule reads the body of requests, for its key or its devices. */
  readonly hasBodyRules: boolean
  /** True if bodies can be read, and a rule reads its key, its devices or the units to reserve from them. */
  readonly readsBodies: boolean
  /** A rule has other quotas for clients with a plan. */
  readonly hasPlans: boolean
  /** A read-only limiter explains a request without counting it. */
  readonly limiter: Pick<Limiter, 'decide'>
}

/**
 * A request to decide about. `decideRequest` writes what it has read here, as soon as it knows: the logs need it even if the client
 * disconnects during the decision.
 */
export type AskedRequest = {
  readonly request: ClientRequest
  readonly peer: Peer
  /** The client has disconnected: the request is not counted any more. */
  readonly isFinished: boolean
  /** Whether another proxy forwards the request if it is allowed, so that the gateway cannot answer in place of the backend. */
  readonly isForwardedByAnother?: boolean
  readHead(): RequestHead | RejectedHead
  /**
   * Sets the units of the charges from the body of the request. `busy`: there is no memory to read it. `gone`: the request
   * was answered, or its client disconnected, before the body was there.
   */
  readUnits?(charges: readonly Charge[]): RequestedCharges | Promise<RequestedCharges>
  /** The body of the request as far as rules read it: the same each time. `gone`: as for `readUnits`. */
  readBody?(): SentBody | 'gone' | Promise<SentBody | 'gone'>
  /** Called where a request counts by address under a policy, as its body does not say for certain for whom it counts. */
  onUnreadKey?(policy: Policy, reason: UnreadKey): void
  /** Called for each applying policy with plans: the plan of the client, `none` or `unknown`. */
  onPlan?(policy: Policy, plan: string): void
  /** Called before the limiter decides. */
  onAsk?(charges: readonly Charge[]): void
  clientAddress: ClientAddress
  /** The request's head; undefined if the request was rejected. */
  head: RequestHead | undefined
  /** Policies of the rules that match. */
  matched: readonly Policy[]
  /**
   * The matching policies that apply to the client: without exemptions, and with the overrides of the table. Conditions are read later.
   */
  applying: readonly Policy[]
  /** The charges with the overrides that were set at run time, once no ban was found. */
  charges: readonly Charge[]
}

export type RequestedCharges = readonly Charge[] | 'busy' | 'gone'

/**
 * The outcome of a request.
 *
 * - `rejected`: it is malformed, too large or not supported
 * - `answered`: a successful OPTIONS that is not for the backend
 * - `denied`: `denyList` has the client, or a file of it
 * - `banned`: the client is banned
 * - `forward`: no rule counts it
 * - `busy`: there is no memory to read its body, which says for whom it counts, or how much to reserve
 * - `gone`: its client disconnected, or it was answered, before it was counted
 * - `allowed`, `refused`, `unavailable`: the limiter's decision
 */
export type Verdict =
  | ({ readonly outcome: 'rejected' } & Omit<RejectedHead, 'path'> & { readonly path?: string })
  | { readonly outcome: 'denied'; readonly by: Denial }
  | { readonly outcome: 'answered' | 'forward' | 'busy' | 'gone' }
  | { readonly outcome: 'banned'; readonly ban: AppliedBan }
  | Decision
