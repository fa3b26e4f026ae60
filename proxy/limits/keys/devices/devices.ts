import { randomBytes } from 'node:crypto'
import type { DevicePolicy, Policy } from '../../../policy.ts'
import type { Charge } from '../../limiter.ts'
import type { DeviceOutcome } from '../../../telemetry/telemetry.ts'
import type { KeySource } from '../part-values.ts'
import { hashedKeyOf } from '../partition-key.ts'
import { spelledAccounts } from './accounts.ts'
import { readTokens, writeSetCookie, type SentToken } from './device-cookie.ts'
import { isMadeFor, writeToken } from './device-token.ts'

/** The final response of the backend, as far as it matters here. */
type Answer = {
  readonly status: number
  /** `Cookie` of the request. */
  readonly cookies: string
  readonly isSecure: boolean
  /** Called for each policy whose device gets a cookie. */
  readonly onIssued?: (policy: Policy) => void
}

export type Devices = {
  /** Counts requests of devices that are known for their account by account and device; all others stay as they are. */
  recognize(charges: readonly Charge[], source: KeySource): readonly Charge[]
  /** The values of `Set-Cookie` for a response that says that somebody has signed in; none for any other. */
  setCookies(charges: readonly Charge[], answer: Answer): readonly string[]
}

/** What the cookies of a request have under a policy. */
type SentTokens = { readonly areSent: boolean; readonly usable: readonly SentToken[] }

/** Clocks of gateways may differ by so much. */
const MAX_SKEW_SECONDS = 300

/**
 * A request that would need more comparisons than these counts by account: no browser has so many. Each takes 3 µs. Tokens that have
 * expired, which most random texts seem to be, need none.
 */
const MAX_COMPARISONS = 32

/**
 * Knows devices by tokens in cookies, and keeps no state: gateways with the same secrets know the same devices.
 *
 * @param options.secrets one or two; the first makes tokens, all are accepted
 * @param options.wallClock milliseconds since 1970
 */
export function createDevices(options: {
  readonly secrets: readonly string[]
  readonly wallClock?: () => number
  readonly random?: (bytes: number) => Buffer
}): Devices {
  const { secrets, wallClock = Date.now, random = randomBytes } = options
  const [newest = ''] = secrets

  const nowSeconds = (): number => Math.floor(wallClock() / 1000)

  function isUnexpired({ seconds }: SentToken, { forMs }: DevicePolicy): boolean {
    const age = nowSeconds() - seconds
    return age >= -MAX_SKEW_SECONDS && age * 1000 < forMs
  }

  function tokensFor(device: DevicePolicy, cookies: string): SentTokens {
    const sent = readTokens(cookies, device.cookie)
    return { areSent: sent.length > 0, usable: sent.filter((token) => isUnexpired(token, device)) }
  }

  function findToken(
    tokens: readonly SentToken[],
    { policy, partitionKey }: Charge,
    account: string,
    budget: { left: number },
  ): SentToken | undefined {
    const subject = { rule: policy.name, partitionKey, account }
    return tokens.find((token) => {
      budget.left -= 1
      return budget.left >= 0 && isMadeFor(token, subject, secrets)
    })
  }

  return {
    recognize(charges, source) {
      if (!charges.some(({ policy }) => policy.device)) return charges
      const cookies = source.headers.cookie ?? ''
      const budget = { left: MAX_COMPARISONS }
      const accountsOf = new Map<Policy, ReadonlyMap<string, string>>()
      const tokensOf = new Map<DevicePolicy, SentTokens>()
      return charges.map((charge) => {
        const { policy, partitionKey } = charge
        const { device } = policy
        if (!device) return charge
        const accounts = accountsOf.get(policy) ?? spelledAccounts(policy, source)
        accountsOf.set(policy, accounts)
        const account = accounts.get(partitionKey)
        const tokens = tokensOf.get(device) ?? tokensFor(device, cookies)
        tokensOf.set(device, tokens)
        const token = account === undefined ? undefined : findToken(tokens.usable, charge, account, budget)
        const outcome: DeviceOutcome = token ? 'known' : tokens.areSent ? 'unknown' : 'none'
        return {
          ...charge,
          partitionKey: token ? keyOfDevice(partitionKey, token) : partitionKey,
          device: { accountKey: partitionKey, account, outcome, ...(token && { token: token.text }) },
        }
      })
    },
    setCookies(charges, { status, cookies, isSecure, onIssued }) {
      const byName = new Map<string, { device: DevicePolicy; made: string[]; replaced: Set<string> }>()
      for (const charge of charges) {
        const { policy, device: of } = charge
        const { device } = policy
        if (!device || !of || of.account === undefined || !isIn(device.status, status)) continue
        // Which of several accounts somebody has signed in to is unknown.
        if (charges.some((other) => other !== charge && other.policy.name === policy.name)) continue
        const subject = { rule: policy.name, partitionKey: of.accountKey, account: of.account }
        const cookie = byName.get(device.cookie) ?? { device, made: [], replaced: new Set() }
        byName.set(device.cookie, cookie)
        cookie.made.push(writeToken(newest, subject, nowSeconds(), random(16)))
        onIssued?.(policy)
        if (of.token !== undefined) cookie.replaced.add(of.token)
        if (device.forMs > cookie.device.forMs) cookie.device = device
      }
      return [...byName].map(([name, { device, made, replaced }]) => {
        // Those of other accounts of the same browser stay.
        const kept = readTokens(cookies, name).filter(
          (token) => isUnexpired(token, device) && !replaced.has(token.text),
        )
        const tokens = [...made, ...kept.map(({ text }) => text)]
        return writeSetCookie(name, tokens, { maxAgeSeconds: Math.floor(device.forMs / 1000), isSecure })
      })
    },
  }
}

/** Whoever signs in anew gets another device, and with it another counter: of the token only its id is used. */
function keyOfDevice(accountKey: string, { id }: SentToken): string {
  return hashedKeyOf(`device:${accountKey}:${id.toString('hex')}`)
}

function isIn(ranges: DevicePolicy['status'], status: number): boolean {
  return ranges.some(({ first, last }) => first <= status && status <= last)
}
