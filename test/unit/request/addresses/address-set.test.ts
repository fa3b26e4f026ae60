import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createAddressSet } from '../../../../proxy/request/addresses/address-set.ts'
import {
  isInRange,
  parseAddress,
  parseAddressRange,
  type AddressRange,
  type IpAddress,
} from '../../../../proxy/request/addresses/ip-address.ts'

function ranges(...texts: string[]): AddressRange[] {
  return texts.map((text) => {
    const range = parseAddressRange(text)
    if (!range) throw new RangeError(text)
    return range
  })
}

const at = (text: string): IpAddress => parseAddress(text) ?? []

test('a set has addresses and networks of both families, in any spelling', () => {
  const set = createAddressSet(ranges('203.0.113.7', '10.9.9.9/8', '2001:db8::/32', '::ffff:192.0.2.0/120'))
  for (const text of ['203.0.113.7', '::ffff:203.0.113.7', '10.0.0.1', '2001:DB8:1::1', '192.0.2.255'])
    expect(set.has(at(text)), text).toBe(true)
  for (const text of ['203.0.113.8', '11.0.0.1', '2001:db9::1', '192.0.3.0', '::1'])
    expect(set.has(at(text)), text).toBe(false)
})

test('contains ranges that are wholly in one of its own', () => {
  const set = createAddressSet(ranges('10.0.0.0/8', '203.0.113.7'))
  for (const text of ['10.1.0.0/16', '10.0.0.0/8', '10.1.2.3', '203.0.113.7/32'])
    for (const range of ranges(text)) expect(set.contains(range), text).toBe(true)
  for (const text of ['10.0.0.0/7', '0.0.0.0/0', '203.0.113.0/24', '::/0'])
    for (const range of ranges(text)) expect(set.contains(range), text).toBe(false)
})

test('a set gives the same result as checking each range', () => {
  const group = fc.constantFrom(0, 1, 0x7fff, 0x8000, 0xffff)
  const address = fc.oneof(
    fc.array(group, { minLength: 8, maxLength: 8 }),
    fc.tuple(group, group).map((tail) => [0, 0, 0, 0, 0, 0xffff, ...tail]),
  )
  const range = fc.record({ address, bits: fc.integer({ min: 0, max: 128 }) })
  fc.assert(
    fc.property(fc.array(range, { maxLength: 4 }), address, (given, asked) => {
      expect(createAddressSet(given).has(asked)).toBe(given.some((one) => isInRange(asked, one)))
    }),
    { numRuns: 1000 },
  )
})
