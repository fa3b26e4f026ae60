import { BlockList } from 'node:net'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  formatAddress,
  isInRange,
  isIpv4,
  parseAddress,
  parseAddressRange,
  type AddressRange,
  type IpAddress,
} from '../../proxy/request/addresses/ip-address.ts'
import { RangeBuilder } from '../../proxy/request/addresses/lists/range-builder.ts'
import { SortedRanges } from '../../proxy/request/addresses/lists/sorted-ranges.ts'

/** Few distinct bits, so that networks often contain, adjoin or repeat one another. */
const group = fc.constantFrom(0, 1, 2, 0x7fff, 0x8000, 0x8001, 0xfffe, 0xffff)
const ipv4 = fc.tuple(group, group).map(([high, low]): IpAddress => [0, 0, 0, 0, 0, 0xffff, high, low])
const ipv6 = fc
  .array(group, { minLength: 8, maxLength: 8 })
  .map((groups): IpAddress => groups)
  .filter((address) => !isIpv4(address))
const bitsOfIpv4 = fc.oneof(fc.constantFrom(96, 97, 127, 128), fc.integer({ min: 96, max: 128 }))
const bitsOfIpv6 = fc.oneof(
  fc.constantFrom(0, 1, 31, 32, 33, 63, 64, 65, 95, 96, 97, 127, 128),
  fc.integer({ min: 0, max: 128 }),
)
const ranges = (one: fc.Arbitrary<IpAddress>, bits: fc.Arbitrary<number>) =>
  fc.array(fc.record({ address: one, bits }), { maxLength: 60 })

function setOf(list: readonly AddressRange[]): SortedRanges {
  const builder = new RangeBuilder(list.length)
  for (const range of list) builder.add(range)
  return new SortedRanges(builder.build())
}

/** The addresses at the edges of the ranges, and the ones next to them. */
function borders(list: readonly AddressRange[]): IpAddress[] {
  return list.flatMap(({ address, bits }) => {
    const first = bigOf(address) & ~((1n << BigInt(128 - bits)) - 1n)
    const last = first | ((1n << BigInt(128 - bits)) - 1n)
    return [first - 1n, first, last, last + 1n].filter((at) => at >= 0n && at < 1n << 128n).map(addressOf)
  })
}

function bigOf(address: IpAddress): bigint {
  return address.reduce((sum, part) => (sum << 16n) | BigInt(part), 0n)
}

function addressOf(value: bigint): IpAddress {
  return Array.from({ length: 8 }, (_, i) => Number((value >> BigInt(16 * (7 - i))) & 0xffffn))
}

/** Asks Node's own block list, for one family. */
function judge(list: readonly AddressRange[], family: 'ipv4' | 'ipv6'): (address: IpAddress) => boolean {
  const blockList = new BlockList()
  const offset = family === 'ipv4' ? 96 : 0
  for (const { address, bits } of list) {
    const text = textOf(address, family)
    // Node accepts no prefix of length 0.
    if (bits > offset) blockList.addSubnet(text, bits - offset, family)
    else for (const half of halves(family)) blockList.addSubnet(half, 1, family)
  }
  return (address) => blockList.check(textOf(address, family), family)
}

const halves = (family: string) => (family === 'ipv4' ? ['0.0.0.0', '128.0.0.0'] : ['::', '8000::'])

function textOf(address: IpAddress, family: 'ipv4' | 'ipv6'): string {
  return family === 'ipv4' ? formatAddress(address) : address.map((part) => part.toString(16)).join(':')
}

describe('a sorted list contains the same addresses as', () => {
  test("Node's BlockList of IPv4 has", () => {
    fc.assert(
      fc.property(ranges(ipv4, bitsOfIpv4), fc.array(ipv4), (list, others) => {
        const set = setOf(list)
        const isListed = judge(list, 'ipv4')
        for (const address of [...borders(list).filter(isIpv4), ...others])
          expect(set.has(address), formatAddress(address)).toBe(isListed(address))
      }),
    )
  })

  test("Node's BlockList of IPv6 has", () => {
    fc.assert(
      fc.property(ranges(ipv6, bitsOfIpv6), fc.array(ipv6), (list, others) => {
        const set = setOf(list)
        const isListed = judge(list, 'ipv6')
        for (const address of [...borders(list), ...others].filter((each) => !isIpv4(each)))
          expect(set.has(address), formatAddress(address)).toBe(isListed(address))
      }),
    )
  })

  test('some entry has, of both families, mapped addresses included', () => {
    const both = fc.tuple(ranges(ipv4, bitsOfIpv4), ranges(ipv6, bitsOfIpv6)).map((lists) => lists.flat())
    const mapped = fc.record({ address: ipv4, bits: bitsOfIpv6 })
    fc.assert(
      fc.property(
        both,
        fc.array(mapped, { maxLength: 3 }),
        fc.array(fc.oneof(ipv4, ipv6)),
        (one, two, others) => {
          const list = [...one, ...two]
          const set = setOf(list)
          for (const address of [...borders(list), ...others])
            expect(set.has(address), formatAddress(address)).toBe(
              list.some((range) => isInRange(address, range)),
            )
        },
      ),
    )
  })
})

test('networks that touch have their own addresses, and neither the one before nor the one after', () => {
  const set = setOf(['10.0.0.0/8', '11.0.0.0/8', '::/96', '1::/16'].map(rangeOf))
  const has = (text: string) => set.has(parseAddress(text) ?? [])
  expect(['9.255.255.255', '10.0.0.0', '11.255.255.255', '12.0.0.0'].map(has)).toEqual([
    false,
    true,
    true,
    false,
  ])
  expect(['::', '::ffff:ffff', '::1:0:0', '1::', '1:ffff::', '2::'].map(has)).toEqual([
    true,
    true,
    false,
    true,
    true,
    false,
  ])
})

function rangeOf(text: string): AddressRange {
  const range = parseAddressRange(text)
  if (!range) throw new Error(text)
  return range
}

test('a long list, which has an index, has the same addresses as its parts', () => {
  fc.assert(
    fc.property(fc.integer(), fc.array(ipv4), (seed, others) => {
      const list = Array.from({ length: 3000 }, (_, i): AddressRange => {
        const value = Math.imul(seed + i, 0x9e3779b1) >>> 0
        return { address: [0, 0, 0, 0, 0, 0xffff, value >>> 16, value & 0xffff], bits: 96 + 8 + (value % 25) }
      })
      const set = setOf(list)
      const parts = [list.slice(0, 900), list.slice(900, 1800), list.slice(1800, 2400), list.slice(2400)].map(
        setOf,
      )
      for (const address of [...borders(list.slice(0, 200)), ...others].filter(isIpv4))
        expect(set.has(address), formatAddress(address)).toBe(parts.some((part) => part.has(address)))
    }),
    { numRuns: 5 },
  )
})

test('a long list of IPv6, whose lookups begin in a sample, has the same addresses as its parts', () => {
  fc.assert(
    fc.property(fc.integer(), fc.constantFrom(33, 65, 100), (seed, minBits) => {
      const list = Array.from({ length: 2000 }, (_, i): AddressRange => {
        const words = [0, 1, 2].map((word) => Math.imul(seed + i * 3 + word, 0x9e3779b1) >>> 0)
        const groups = words.flatMap((word) => [word >>> 16, word & 0xffff])
        return { address: [0x2001, 0xdb8, ...groups], bits: minBits + (i % 29) }
      })
      const set = setOf(list)
      const parts = Array.from({ length: 40 }, (_, i) => setOf(list.slice(50 * i, 50 * (i + 1))))
      for (const address of borders(list.filter((_, i) => i % 10 === 0)))
        expect(set.has(address), formatAddress(address)).toBe(parts.some((part) => part.has(address)))
    }),
    { numRuns: 10 },
  )
})
