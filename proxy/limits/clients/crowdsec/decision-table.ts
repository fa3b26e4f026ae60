import {
  formatAddress,
  isIpv4,
  networkOf,
  parseClientRange,
  type IpAddress,
} from '../../../request/addresses/ip-address.ts'
import type { AddressList } from '../../../request/addresses/lists/address-lists.ts'
import type { TableUse } from '../../../telemetry/telemetry.ts'
import type { Decision } from './decision.ts'

/**
 * A change of the decisions. Changes between `begin` and `end` are the complete list, which replaces the active decisions at `end`; any
 * other change applies to the active decisions.
 */
export type DecisionChange =
  | { readonly crowdsec: 'begin' | 'end' }
  | { readonly crowdsec: 'set'; readonly decisions: readonly Decision[] }
  | { readonly crowdsec: 'delete'; readonly values: readonly string[] }

/** Maximum number of decisions, about 60 MB. @internal exported for its test */
export const MAX_DECISIONS = 500_000

/** A `Map` copies all its entries when it grows. With many small maps, each pause is short. */
const SHARDS = 32

type Key = number | string
type Shards = readonly Map<Key, number>[]

/** The end of each decision, by network. */
class Networks {
  /** The networks by prefix length. */
  readonly #byBits = new Map<number, Shards>()
  size = 0
  ignored = 0

  has(address: IpAddress, nowMs: number): boolean {
    for (const [bits, shards] of this.#byBits) {
      const key = keyOf(address, bits)
      const untilMs = shardOf(shards, key).get(key)
      if (untilMs !== undefined && untilMs > nowMs) return true
    }
    return false
  }

  set(address: IpAddress, bits: number, untilMs: number): void {
    let shards = this.#byBits.get(bits)
    if (!shards) this.#byBits.set(bits, (shards = Array.from({ length: SHARDS }, () => new Map())))
    const key = keyOf(address, bits)
    const shard = shardOf(shards, key)
    if (!shard.has(key)) {
      if (this.size >= MAX_DECISIONS) {
        this.ignored++
        return
      }
      this.size++
    }
    shard.set(key, untilMs)
  }

  *all(nowMs: number): Generator<Decision> {
    for (const [bits, shards] of this.#byBits)
      for (const shard of shards)
        for (const [key, untilMs] of shard)
          yield { value: `${addressOf(key, bits)}/${bitsAsWritten(key, bits)}`, leftMs: untilMs - nowMs }
  }

  delete(address: IpAddress, bits: number): void {
    const shards = this.#byBits.get(bits)
    const key = keyOf(address, bits)
    if (shards && shardOf(shards, key).delete(key)) this.size--
  }
}

/**
 * This process's copy of CrowdSec's decisions. The cost of a lookup depends on the number of different prefix lengths, not of decisions. A
 * decision ends after its duration, even if no further update arrives.
 */
export class DecisionTable implements AddressList {
  readonly #now: () => number
  #active = new Networks()
  /** The new table while all decisions are being read. */
  #next: Networks | undefined
  #isComplete = false

  /** @param now monotonic milliseconds */
  constructor(now: () => number) {
    this.#now = now
  }

  has(address: IpAddress): boolean {
    return this.#active.has(address, this.#now())
  }

  apply(change: DecisionChange): void {
    switch (change.crowdsec) {
      case 'begin':
        this.#next = new Networks()
        return
      case 'end':
        this.#active = this.#next ?? this.#active
        this.#isComplete = true
        this.#next = undefined
        return
      case 'set':
        for (const { value, leftMs } of change.decisions) this.#set(value, leftMs)
        return
      case 'delete':
        for (const value of change.values) this.#delete(value)
    }
  }

  #set(value: string, leftMs: number): void {
    const range = parseClientRange(value)
    const networks = this.#next ?? this.#active
    if (!range) networks.ignored++
    else if (leftMs > 0) networks.set(range.address, range.bits, this.#now() + leftMs)
  }

  #delete(value: string): void {
    const range = parseClientRange(value)
    if (range) (this.#next ?? this.#active).delete(range.address, range.bits)
  }

  /** The active decisions, for a copy; undefined until all decisions have been read once. */
  all(): Iterable<Decision> | undefined {
    return this.#isComplete ? this.#active.all(this.#now()) : undefined
  }

  readUse(): TableUse {
    const { size, ignored } = this.#active
    return { size, capacity: MAX_DECISIONS, evictions: ignored }
  }
}

const IPV4_BITS = 96

/** The key of a network: a number for IPv4, a string of eight characters for IPv6. */
function keyOf(address: IpAddress, bits: number): Key {
  if (isIpv4(address) && bits >= IPV4_BITS) {
    const value = (address[6] ?? 0) * 0x1_0000 + (address[7] ?? 0)
    return Math.floor(value / 2 ** (128 - bits))
  }
  return String.fromCharCode(...networkOf(address, bits))
}

/** The address of a key, as the part of a CIDR before the slash. */
function addressOf(key: Key, bits: number): string {
  if (typeof key === 'string') return formatAddress(Array.from({ length: 8 }, (_, i) => key.charCodeAt(i)))
  const value = key * 2 ** (128 - bits)
  return formatAddress([0, 0, 0, 0, 0, 0xffff, Math.floor(value / 0x1_0000), value % 0x1_0000])
}

function bitsAsWritten(key: Key, bits: number): number {
  return typeof key === 'string' ? bits : bits - IPV4_BITS
}

function shardOf(shards: Shards, key: Key): Map<Key, number> {
  let mixed = typeof key === 'number' ? key : 0
  if (typeof key === 'string')
    for (let i = 0; i < key.length; i++) mixed = Math.imul(mixed ^ key.charCodeAt(i), 0x9e3779b1)
  const shard = shards[(Math.imul(mixed, 0x9e3779b1) >>> 16) % SHARDS]
  if (!shard) throw new RangeError('there is no such shard')
  return shard
}
