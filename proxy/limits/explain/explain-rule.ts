import type { RunTimeState } from './bans.ts'
import { conditionText } from '../conditions/written-conditions.ts'
import { unitsOf, type Charge } from '../limiter.ts'
import type { DeviceOutcome, UnreadKey } from '../../telemetry/telemetry.ts'
import type { KeySource } from '../keys/part-values.ts'
import { reservedUnits, type CalendarWindow, type OverPolicy, type Policy, type Rule } from '../../policy.ts'
import { keyPartsOf, type KeyPart } from './key-parts.ts'
import type { RequestHead } from '../../request/request-head.ts'
import type { RequestContext } from '../verdict.ts'
import type { RequestTable } from '../request-table.ts'
import { whyNot, type WhyNot } from './why-not.ts'

export type ExplainedRule = {
  readonly name: string
  readonly counts: boolean
  /** Whether the rule nearly counts the request. */
  readonly near: boolean
  /** The reason why the rule does not count the request, or which override applies. */
  readonly why?: string
  /** The number, from 1, of the override in the file that applies to the client. */
  readonly override?: number
  /** The client's plan, if its token names one of the rule's plans. */
  readonly plan?: string
  /** Why a rule with a key in the body counts the request by the client's address, too or only. */
  readonly unread?: UnreadKey
  /** The names of the request's counters. Several if backends may read different clients. */
  readonly keys: readonly string[]
  /** The units that the request reserves in each of these counters, in the same order. */
  readonly units: readonly number[]
  readonly key: readonly KeyPart[]
  readonly requests: number
  readonly windowSeconds: number
  readonly calendar?: CalendarWindow
  readonly algorithm: Policy['algorithm']
  readonly mode: Policy['mode']
  /** How requests over the limit are handled, if they are not refused. */
  readonly over?: OverPolicy
  /** The waiting queue of the process that answers is full for this client. */
  readonly waitingFull?: true
  /** The units that gateways take ahead from Redis. */
  readonly lease?: Policy['lease']
}

type ExplainedRequest = {
  readonly table: RequestTable
  readonly context: RequestContext
  readonly head: RequestHead
  readonly keySource: KeySource
  readonly runTime?: RunTimeState | undefined
  /** By rule name. */
  readonly unread: ReadonlyMap<string, UnreadKey>
}

/** Explains whether and how a rule counts a request that `decideRequest` has decided. */
export function explainRule(rule: Rule, explained: ExplainedRequest): ExplainedRule {
  const { applying, charges } = explained.context
  const chosen = applying.find(({ name }) => name === rule.policy.name) ?? rule.policy
  // Overrides have the name of their policy, including those that were set at run time.
  const ofRule = charges.filter((charge) => charge.policy.name === rule.policy.name)
  const usual = ofRule.filter(({ isExtra }) => !isExtra)
  const policy = overrideOfAccount(rule, usual) ?? chosen
  const key = keyPartsOf(policy, explained.keySource)
  const described = describePolicy(policy)
  const reason = whyNotCounted(rule, chosen, { key, charges: ofRule }, explained)
  if (reason)
    return {
      ...described,
      counts: false,
      near: reason.isNear,
      why: reason.text,
      keys: [],
      units: [],
      key: [],
    }
  return {
    ...described,
    ...describeCharges(policy, ofRule, explained),
    keys: ofRule.map(({ partitionKey }) => partitionKey),
    // A running gateway knows the client's plan, of which the units are a part.
    units: ofRule.map((charge) =>
      explained.runTime ? (charge.units ?? reservedUnits(charge.policy)) : unitsOf(charge),
    ),
    key,
  }
}

function describePolicy(policy: Policy) {
  return {
    name: policy.name,
    requests: policy.quota,
    windowSeconds: policy.windowMs / 1000,
    ...(policy.calendar && { calendar: policy.calendar }),
    algorithm: policy.algorithm,
    mode: policy.mode,
    ...(policy.over && { over: policy.over }),
    ...(policy.lease !== undefined && { lease: policy.lease }),
  }
}

/**
 * Returns why the rule does not count the request, by the first step that decided so; undefined if it counts it.
 *
 * @param chosen the policy of the rule or of its override for this client
 * @param found the key parts under the rule, and the charges of the rule
 */
function whyNotCounted(
  rule: Rule,
  chosen: Policy,
  { key, charges }: { readonly key: readonly KeyPart[]; readonly charges: readonly Charge[] },
  { table, context, head, keySource }: ExplainedRequest,
): Pick<WhyNot, 'text' | 'isNear'> | undefined {
  const { request, clientAddress, matched, applying } = context
  const near = (text: string): Pick<WhyNot, 'text' | 'isNear'> => ({ text, isNear: true })
  if (!matched.includes(rule.policy))
    return whyNot(rule, request, head, table.limits.preflightRules !== undefined)
  if (!applying.includes(chosen)) {
    const isForAll = table.limits.clientLists?.allows(clientAddress, request)
    return near(isForAll ? 'allowList contains the client' : "the rule's allowList contains the client")
  }
  const unmet = table.limits.conditions?.unmet(chosen, { ...keySource, rawHeaders: request.rawHeaders })
  if (unmet) {
    const state = unmet.field === 'when' ? 'is not met' : 'is met'
    return near(`${unmet.field} ${state}: ${conditionText(unmet.condition)}`)
  }
  if (charges.length > 0) return undefined
  const absent = key.filter(({ values }) => values.length === 0).map(({ part }) => part)
  return near(`the request has no ${absent.join(', no ')}`)
}

/** Describes the charges of a rule: plan, override, waiting queue, and the parts of the request that could not be read. */
function describeCharges(
  policy: Policy,
  charges: readonly Charge[],
  explained: ExplainedRequest,
): Pick<ExplainedRule, 'counts' | 'near'> & Partial<ExplainedRule> {
  const unread = explained.unread.get(policy.name)
  const usual = charges.filter(({ isExtra }) => !isExtra)
  const override = policy.override === undefined ? undefined : policy.override + 1
  const reasons = [
    ...(override === undefined ? overridesOfSome(usual) : [`override ${override} applies to the client`]),
    ...(unread === undefined ? [] : [unreadText[unread]]),
    ...deviceTexts(usual),
  ]
  const waitsNowhere = charges.some((charge) => explained.runTime?.hasPlace(charge) === false)
  const planned = charges.find((charge) => charge.policy.plan)?.policy
  return {
    ...(planned?.plan !== undefined && { requests: planned.quota, plan: planned.plan }),
    counts: true,
    near: false,
    ...(reasons.length > 0 && { why: reasons.join('; ') }),
    ...(override !== undefined && { override }),
    ...(waitsNowhere && { waitingFull: true as const }),
    ...(unread !== undefined && { unread }),
  }
}

/** The policy of the accounts' override, if all accounts that the request counts for have the same one. */
function overrideOfAccount({ overrides = [] }: Rule, charges: readonly Charge[]): Policy | undefined {
  const [first, ...others] = charges.map((charge) => charge.policy.override)
  if (first === undefined || others.some((other) => other !== first)) return undefined
  const { accounts, policy } = overrides[first] ?? {}
  return accounts ? policy : undefined
}

/** Describes the overrides that apply to some clients of a batch. The rule's own quota applies to the other clients. */
function overridesOfSome(charges: readonly Charge[]): string[] {
  const byOverride = Map.groupBy(charges, ({ policy }) => policy.override)
  return [...byOverride].flatMap(([override, [first, ...others]]) =>
    override === undefined || !first
      ? []
      : [
          `override ${override + 1} (${first.policy.quota} requests) applies to ${others.length + 1} of its ${charges.length} clients`,
        ],
  )
}

/** A member that is certain counts, too, even if the rest of the body is not certain. */
const byAddress = 'counts by address too, as the body'
const unreadText: Readonly<Record<UnreadKey, string>> = {
  missing: 'counts by address, as the body does not contain the key',
  type: `${byAddress} is neither JSON nor a form`,
  charset: `${byAddress} has an unsupported charset`,
  encoding: `${byAddress} has a Content-Encoding`,
  size: `${byAddress} is longer than 64 KiB`,
  memory: 'counts by address, as there is no memory for the body',
  syntax: `${byAddress} is not valid for every parser`,
  value: `${byAddress} has an object or an array in place of the value`,
}

const deviceText: Readonly<Record<DeviceOutcome, string>> = {
  known: 'counts by account and device, as the device has signed in to this account',
  unknown: 'counts by account, as its device cookie is not valid for this account',
  none: 'counts by account, as it has no device cookie',
}

const overriddenText =
  'has no known device, as a header or a field _method may give the request another method, or its body is not read as a whole'

function deviceTexts(charges: readonly Charge[]): string[] {
  const texts = charges.flatMap(({ device }) => {
    if (!device) return []
    if (device.mayOverrideMethod) return [overriddenText]
    return device.account === undefined
      ? ['has no known device, as the request does not clearly name an account']
      : deviceText[device.outcome]
  })
  return [...new Set(texts)]
}
