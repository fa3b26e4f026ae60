import { errors } from '../../shared/error-replies.ts'
import { isPreflight } from '../http/fields/cors.ts'
import type { ClientRequest } from '../http/message/messages.ts'
import { hasBodyKey, type Policy } from '../policy.ts'
import type { AddressReader, ClientAddress, Peer } from '../request/addresses/client-address.ts'
import type { Geo } from '../request/addresses/geo/geo.ts'
import { localReply, whyRejected, type RejectedHead, type RequestHead } from '../request/request-head.ts'
import type { AppliedBan, ClientEntries } from './clients/client-entries.ts'
import type { ClientLists, Denial } from './clients/lists/client-lists.ts'
import type { Conditions } from './conditions/conditions.ts'
import { areRequested } from './costs/requested-charges.ts'
import type { Devices } from './keys/devices/devices.ts'
import type { SentBody } from './keys/body/body-values.ts'
import { KeyBody } from './keys/body/key-body.ts'
import { chargesByBody } from './keys/body/body-charges.ts'
import type { UnreadKey } from '../telemetry/telemetry.ts'
import { choosePlans, notePlans } from './plans/choose-plans.ts'
import { readPart, type KeySource } from './keys/part-values.ts'
import { maxReadings, partitionKeysOf, type ReadPart } from './keys/partition-key.ts'
import type { ReadClaims, TokenReader } from './keys/tokens/token-reader.ts'
import type { Charge, Decision, Limiter } from './limiter.ts'
import type { RuleTable } from './rules/rule-table.ts'

/** The inputs of `decideRequest`: the table of limits, clients that are banned or have a limit of their own, and the counters. */
export type DecisionTable = {
  readonly rules: RuleTable
  /** The same for preflights, where others than `rules` apply to them. */
  readonly preflightRules: RuleTable | undefined
  /** Undefined where no list names anybody. */
  readonly clientLists: ClientLists | undefined
  /** Undefined where no rule has any. */
  readonly conditions?: Conditions | undefined
  readonly addresses: AddressReader
  /** Undefined without databases of countries and systems. */
  readonly geo?: Geo | undefined
  /** Bans and overrides that were set at run time. */
  readonly entries: Pick<ClientEntries, 'findAddressBan' | 'findKeyBan' | 'withOverrides'>
  /** Undefined where no rule counts by tokens. */
  readonly tokens: TokenReader | undefined
  /** Undefined where no rule has `device`. */
  readonly devices: Devices | undefined
  /** A rule counts by what the body of requests says. */
  readonly hasBodyKeys: boolean
  /** Bodies can be read, and a rule reads for whom they count, or how much to reserve. */
  readonly readsBodies: boolean
  /** A rule has other quotas for clients with a plan. */
  readonly hasPlans: boolean
  /** One that only reads explains a request without counting it. */
  readonly limiter: Pick<Limiter, 'decide'>
}

/**
 * A request to decide about. `decideRequest` writes here what it has read, as soon as it knows: the logs need it even if the
 * client disconnects during the decision.
 */
export type AskedRequest = {
  readonly request: ClientRequest
  readonly peer: Peer
  /** The client has disconnected: the request is not counted any more. */
  readonly isOver: boolean
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
  /** Undefined if it was rejected. */
  head: RequestHead | undefined
  /** Policies of the rules that match. */
  matched: readonly Policy[]
  /** Of these, the ones that apply to the client: without exemptions, and with the overrides of the table. Conditions are read later. */
  applying: readonly Policy[]
  /** With the overrides that were set at run time, once no ban was found. */
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

/**
 * Decides about a request. This is the only place that defines the order of the steps. Returns the verdict itself, and no promise,
 * if everything is known in this process.
 */
export function decideRequest(asked: AskedRequest, table: DecisionTable): Verdict | Promise<Verdict> {
  const { request, peer } = asked
  const { addresses, clientLists, entries, tokens } = table
  const client = (asked.clientAddress = addresses.readClientAddress(peer, request.headers[addresses.header]))

  const head = asked.readHead()
  if ('reason' in head) return { outcome: 'rejected', ...head }
  asked.head = head

  const reply = localReply({ method: head.method, headers: request.headers }, head.target)
  if (reply === 'options') return { outcome: 'answered' }
  if (reply) return { outcome: 'rejected', reason: 'other', reply, why: whyRejected(reply) }

  const denial = clientLists?.findDenial(client, request)
  if (denial) return { outcome: 'denied', by: denial }

  const ban = entries.findAddressBan(client.prefix)
  if (ban && !clientLists?.allows(client, request)) return { outcome: 'banned', ban }

  asked.matched = matchRules(head, request, table)
  asked.applying = clientLists?.applying(asked.matched, client, request) ?? asked.matched

  const claims = tokens?.read(asked.applying, request)
  if (claims instanceof Promise) return claims.then((later) => charge(asked, head, later, table))
  return charge(asked, head, claims, table)
}

/** The second half, once the tokens of the request are verified. */
function charge(
  asked: AskedRequest,
  head: RequestHead,
  claims: ReadClaims | undefined,
  table: DecisionTable,
): Verdict | Promise<Verdict> {
  if (asked.isOver) return { outcome: 'gone' }
  const meeting = meetingConditions(asked, head, claims, table)
  const applying = table.hasPlans ? choosePlans(meeting, claims, asked) : meeting
  if (!table.hasBodyKeys || !applying.some(hasBodyKey))
    return chargeFor(asked, head, { claims, applying }, table)
  const body = (table.readsBodies && asked.readBody?.()) || missingBody
  if (body instanceof Promise)
    return body.then((later) => chargeByBody(asked, head, { claims, applying }, later, table))
  return chargeByBody(asked, head, { claims, applying }, body, table)
}

/** Those of the applying policies whose conditions the request meets. */
function meetingConditions(
  { request, clientAddress: client, applying }: AskedRequest,
  { target, host }: RequestHead,
  claims: ReadClaims | undefined,
  { conditions, geo }: DecisionTable,
): readonly Policy[] {
  if (!conditions) return applying
  const { headers, rawHeaders } = request
  return conditions.applying(applying, { client, host, target, geo, claims, headers, rawHeaders })
}

/** The parts of a request that are read before its body. */
type ReadHead = Pick<KeySource, 'claims'> & { readonly applying: readonly Policy[] }

function chargeByBody(
  asked: AskedRequest,
  head: RequestHead,
  read: ReadHead,
  sent: SentBody | 'gone',
  table: DecisionTable,
): Verdict | Promise<Verdict> {
  if (sent === 'gone') return { outcome: 'gone' }
  const isNeeded = read.applying.some((policy) => policy.mode === 'enforce' && hasBodyKey(policy))
  if ('unread' in sent && sent.unread === 'memory' && isNeeded) return { outcome: 'busy' }
  const body = new KeyBody(sent, asked.request, head.target.forwardTarget)
  return chargeFor(asked, head, { ...read, body }, table)
}

function chargeFor(
  asked: AskedRequest,
  { target, host }: RequestHead,
  { applying, ...read }: ReadHead & Pick<KeySource, 'body'>,
  table: DecisionTable,
): Verdict | Promise<Verdict> {
  const { clientAddress: client } = asked
  const { headers } = asked.request
  const { addresses, geo, entries, readsBodies, devices } = table

  const source = { client, host, target, geo, headers, addresses, ...read }
  const found = chargesOf(applying, source, asked)
  if (!found) return { outcome: 'rejected', ...ambiguousKey }
  const charges = devices ? devices.recognize(found, source) : found
  asked.charges = charges

  const ban = entries.findKeyBan(charges)
  if (ban) return { outcome: 'banned', ban }

  asked.charges = entries.withOverrides(charges)
  if (asked.charges.length === 0) return { outcome: 'forward' }

  if (!readsBodies || !asked.readUnits || !areRequested(asked.charges)) return askLimiter(asked, table)
  const units = asked.readUnits(asked.charges)
  if (units instanceof Promise) return units.then((later) => chargeUnits(asked, later, table))
  return chargeUnits(asked, units, table)
}

const missingBody: SentBody = { unread: 'missing' }

function chargeUnits(
  asked: AskedRequest,
  units: RequestedCharges,
  table: DecisionTable,
): Verdict | Promise<Verdict> {
  if (typeof units === 'string') return { outcome: units }
  asked.charges = units
  return askLimiter(asked, table)
}

function askLimiter(asked: AskedRequest, { limiter, hasPlans }: DecisionTable): Decision | Promise<Decision> {
  asked.onAsk?.(asked.charges)
  const decision = limiter.decide(asked.charges)
  if (!hasPlans) return decision
  return decision instanceof Promise
    ? decision.then((later) => notePlans(asked, later))
    : notePlans(asked, decision)
}

function matchRules(
  { method, target, host }: RequestHead,
  { headers }: ClientRequest,
  { rules, preflightRules }: DecisionTable,
): readonly Policy[] {
  const applying = preflightRules && isPreflight({ method, headers }) ? preflightRules : rules
  return applying.match(target, method, headers, host)
}

/**
 * The charges of a request: one for each policy that applies to its client, and several where backends would not read the
 * same client, or where its body is a batch. A policy whose partition key needs something that the request does not have does not apply.
 *
 * @returns undefined where an enforced policy's client could be read in too many ways
 */
function chargesOf(
  policies: readonly Policy[],
  source: KeySource,
  asked: Pick<AskedRequest, 'onUnreadKey'>,
): readonly Charge[] | undefined {
  if (policies.length === 0) return noCharges
  const read: ReadPart = (part) => readPart(part, source)
  const address = source.client.prefix
  const charges: Charge[] = []
  for (const policy of policies) {
    // The usual rule, for which nothing else is looked at.
    if (isByAddress(policy)) {
      charges.push({ policy, partitionKey: address })
      continue
    }
    if (source.body && hasBodyKey(policy)) {
      const counted = chargesByBody(policy, read, source.body, address, asked)
      if (!counted) return undefined
      charges.push(...counted)
      continue
    }
    let keys = partitionKeysOf(policy, read)
    if (keys.length > maxReadings) {
      if (policy.mode === 'enforce') return undefined
      keys = keys.slice(0, maxReadings)
    }
    for (const partitionKey of keys) charges.push({ policy, partitionKey })
  }
  return charges
}

function isByAddress({ partition }: Policy): boolean {
  return partition.length === 1 && partition[0]?.kind === 'ip'
}

const noCharges: readonly Charge[] = []

const ambiguousKey = {
  reason: 'ambiguous-key',
  reply: errors.badRequest,
  why: 'the key of a rule can be read in more than 8 ways, or the body counts for too many clients',
} as const
