import { randomBytes } from 'node:crypto'
import { includesStatus, type DevicePolicy, type Policy } from '../../../policy.ts'
import type { Charge } from '../../limiter.ts'
import type { DeviceOutcome } from '../../../telemetry/telemetry.ts'
import type { KeySource } from '../part-values.ts'
import { hashedKeyOf } from '../partition-key.ts'
import { spelledAccounts } from './accounts.ts'
import { readTokens, writeSetCookie, type SentToken } from './device-cookie.ts'
import { isMadeFor, writeToken, type TokenSubject } from './device-token.ts'
import { mayOverrideMethod } from './method-override.ts'
import { signInTargets } from './sign-in-target.ts'

/** The relevant parts of the exchange with the backend. */
type Answer = {
  readonly status: number
  /** The `Cookie` header of the request. */
  readonly cookies: string
  readonly isSecure: boolean
  /** Called for each policy for which the device gets a token. */
  readonly onIssued?: (policy: Policy) => void
}

/** The device cookies of a request under a policy. */
type SentTokens = { readonly areSent: boolean; readonly usable: readonly SentToken[] }

/** Maximum difference between the clocks of gateways. */
const MAX_SKEW_SECONDS = 300

/**
 * Maximum token comparisons for one request, over all its charges; no browser needs as many. After them, no further token is recognized,
 * and the charge counts by account. Each comparison takes 3 µs. Expired tokens, as most random texts appear to be, are not compared.
 */
const MAX_COMPARISONS = 32

/** The accounts and tokens of one request, read once for all its charges. */
type Recognition = {
  readonly source: KeySource
  /** The backend may respond with its sign-in form, and with the status of a successful sign-in. */
  readonly mayNotBeSignIn: boolean
  /** The targets for which tokens are valid; new tokens are made for the first one. */
  readonly signInTargets: readonly string[]
  comparisonsLeft: number
  readonly accounts: Map<Policy, ReadonlyMap<string, string>>
  /** By policy name, the token that identifies the device of each charge, except extra charges. */
  readonly found: Map<string, (SentToken | undefined)[]>
  readonly tokens: Map<DevicePolicy, SentTokens>
}

/** A cookie for a response, with its new tokens and the tokens that they replace. */
type NewCookie = { device: DevicePolicy; readonly made: string[]; readonly replaced: Set<string> }

/** Recognizes devices by tokens in cookies, without storing devices. Gateways with the same secrets recognize the same devices. */
export class Devices {
  readonly #secrets: readonly string[]
  readonly #wallClock: () => number
  readonly #random: (bytes: number) => Buffer

  /**
   * @param options.secrets one or two; tokens are made with the first one and accepted with all
   * @param options.wallClock milliseconds since 1970
   */
  constructor(options: {
    readonly secrets: readonly string[]
    readonly wallClock?: () => number
    readonly random?: (bytes: number) => Buffer
  }) {
    this.#secrets = options.secrets
    this.#wallClock = options.wallClock ?? Date.now
    this.#random = options.random ?? randomBytes
  }

  /**
   * Changes the charges of devices that are known for their account, so that they count by account and device. Other charges are returned
   * unchanged. A device is known for the method, host and path with which it signed in.
   */
  recognize(charges: readonly Charge[], source: KeySource, method: string): readonly Charge[] {
    if (!charges.some(({ policy }) => policy.device)) return charges
    const recognition: Recognition = {
      source,
      mayNotBeSignIn: mayOverrideMethod(source, method),
      signInTargets: signInTargets(source, method),
      comparisonsLeft: MAX_COMPARISONS,
      accounts: new Map(),
      found: new Map(),
      tokens: new Map(),
    }
    const recognized = charges.map((charge) =>
      charge.isExtra ? charge : this.#recognizeOne(charge, recognition),
    )
    return recognized.map((charge) => (charge.isExtra ? this.#recognizeExtra(charge, recognition) : charge))
  }

  /** Returns the values of `Set-Cookie` for a response to a successful sign-in; empty for any other response. */
  setCookies(charges: readonly Charge[], answer: Answer): readonly string[] {
    const { cookies, isSecure } = answer
    return Array.from(this.#newCookies(charges, answer), ([name, { device, made, replaced }]) => {
      // Tokens of the browser's other accounts are kept.
      const kept = readTokens(cookies, name).filter(
        (token) => this.#isUnexpired(token, device) && !replaced.has(token.text),
      )
      const tokens = [...made, ...kept.map(({ text }) => text)]
      return writeSetCookie(name, tokens, { maxAgeSeconds: Math.floor(device.forMs / 1000), isSecure })
    })
  }

  #recognizeOne(charge: Charge, recognition: Recognition): Charge {
    const { policy, partitionKey } = charge
    const { device } = policy
    if (!device) return charge
    const spelled = recognition.mayNotBeSignIn ? undefined : accountsOf(policy, recognition).get(partitionKey)
    const [account, ...others] =
      spelled === undefined ? [] : recognition.signInTargets.map((target) => `${target} ${spelled}`)
    const tokens = this.#tokensFor(device, recognition)
    const find = (of: string | undefined): SentToken | undefined =>
      of === undefined ? undefined : this.#findToken(tokens.usable, charge, of, recognition)
    const replaced = find(account)
    const token = replaced ?? find(others[0])
    const found = recognition.found.get(policy.name)
    if (found) found.push(token)
    else recognition.found.set(policy.name, [token])
    const outcome: DeviceOutcome = token ? 'known' : tokens.areSent ? 'unknown' : 'none'
    return {
      ...charge,
      partitionKey: token ? keyOfDevice(partitionKey, token) : partitionKey,
      device: {
        accountKey: partitionKey,
        account,
        outcome,
        ...(recognition.mayNotBeSignIn && { mayOverrideMethod: true as const }),
        ...(replaced && { replaced: replaced.text }),
      },
    }
  }

  /** Recognizes the device of an extra client, which only few backends find: the device of the other clients, if each of them has one. */
  #recognizeExtra(charge: Charge, recognition: Recognition): Charge {
    const { policy, partitionKey } = charge
    if (!policy.device) return charge
    const found = recognition.found.get(policy.name) ?? []
    const token = found.every(Boolean) ? found[0] : undefined
    const { areSent } = this.#tokensFor(policy.device, recognition)
    const outcome: DeviceOutcome = token ? 'known' : areSent ? 'unknown' : 'none'
    return {
      ...charge,
      partitionKey: token ? keyOfDevice(partitionKey, token) : partitionKey,
      device: { accountKey: partitionKey, account: undefined, outcome },
    }
  }

  #tokensFor(device: DevicePolicy, { tokens, source }: Recognition): SentTokens {
    const known = tokens.get(device)
    if (known) return known
    const sent = readTokens(source.headers.cookie ?? '', device.cookie)
    const read = {
      areSent: sent.length > 0,
      usable: sent.filter((token) => this.#isUnexpired(token, device)),
    }
    tokens.set(device, read)
    return read
  }

  #findToken(
    tokens: readonly SentToken[],
    { policy, partitionKey }: Charge,
    account: string,
    recognition: Recognition,
  ): SentToken | undefined {
    const subject = { rule: policy.name, partitionKey, account }
    return tokens.find((token) => {
      recognition.comparisonsLeft -= 1
      return recognition.comparisonsLeft >= 0 && isMadeFor(token, subject, this.#secrets)
    })
  }

  /** Returns the new cookies by name. A cookie that several policies share has the tokens of all, and the longest of their lifetimes. */
  #newCookies(charges: readonly Charge[], { status, onIssued }: Answer): Map<string, NewCookie> {
    const byName = new Map<string, NewCookie>()
    for (const charge of charges) {
      const { policy, device: of } = charge
      const { device } = policy
      if (!device || !of || of.account === undefined || !includesStatus(device.status, status)) continue
      // The status of a batch does not say how its requests ended.
      if (charge.isBatch) continue
      // If the request names several accounts, it is unknown to which one it has signed in.
      if (charges.some((other) => other !== charge && !other.isExtra && other.policy.name === policy.name))
        continue
      const subject = { rule: policy.name, partitionKey: of.accountKey, account: of.account }
      const cookie = byName.get(device.cookie) ?? { device, made: [], replaced: new Set() }
      byName.set(device.cookie, cookie)
      cookie.made.push(this.#makeToken(subject))
      onIssued?.(policy)
      if (of.replaced !== undefined) cookie.replaced.add(of.replaced)
      if (device.forMs > cookie.device.forMs) cookie.device = device
    }
    return byName
  }

  #makeToken(subject: TokenSubject): string {
    const [newest = ''] = this.#secrets
    return writeToken(newest, subject, this.#nowSeconds(), this.#random(16))
  }

  #isUnexpired({ seconds }: SentToken, { forMs }: DevicePolicy): boolean {
    const age = this.#nowSeconds() - seconds
    return age >= -MAX_SKEW_SECONDS && age * 1000 < forMs
  }

  #nowSeconds(): number {
    return Math.floor(this.#wallClock() / 1000)
  }
}

function accountsOf(policy: Policy, { accounts, source }: Recognition): ReadonlyMap<string, string> {
  const known = accounts.get(policy)
  if (known) return known
  const spelled = spelledAccounts(policy, source)
  accounts.set(policy, spelled)
  return spelled
}

/** The key of a device. It depends on the token's id only. A new sign-in gets a new id, and thereby another counter. */
function keyOfDevice(accountKey: string, { id }: SentToken): string {
  return hashedKeyOf(`device:${accountKey}:${id.toString('hex')}`)
}
