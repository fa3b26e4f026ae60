import { expect, test } from 'vitest'
import { compileRanges, isLoopback, isPrivate } from '../../../../proxy/request/addresses/address-ranges.ts'
import { parseAddress } from '../../../../proxy/request/addresses/ip-address.ts'

test.each([
  ['127.0.0.1', true],
  ['127.255.255.255', true],
  ['::1', true],
  ['0:0:0:0:0:0:0:1', true],
  ['::ffff:127.0.0.1', true],
  ['::1%lo', true],
  ['126.255.255.255', false],
  ['128.0.0.0', false],
  ['127.0.0.1%lo', false],
  ['::', false],
  ['::2', false],
  // The obsolete IPv4-compatible form (RFC 4291 section 2.5.5.1) is not a loopback address.
  ['::127.0.0.1', false],
  ['localhost', false],
  ['', false],
])('%j is a loopback address: %s', (address, is) => {
  expect(isLoopback(address)).toBe(is)
})

/** The first and last address of each network, and the addresses just before and after it. */
test.each([
  ['10.0.0.0', '10.255.255.255', '9.255.255.255', '11.0.0.0'],
  ['100.64.0.0', '100.127.255.255', '100.63.255.255', '100.128.0.0'],
  ['127.0.0.0', '127.255.255.255', '126.255.255.255', '128.0.0.0'],
  ['172.16.0.0', '172.31.255.255', '172.15.255.255', '172.32.0.0'],
  ['192.168.0.0', '192.168.255.255', '192.167.255.255', '192.169.0.0'],
  ['::1', '::1', '::', '::2'],
  ['fc00::', 'fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'fbff::', 'fe00::'],
  ['fe80::', 'febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'fe7f::', 'fec0::'],
])('the network from %s to %s is private, %s and %s are not', (first, last, before, after) => {
  expect([first, last, before, after].map(isPrivate)).toEqual([true, true, false, false])
})

test('an entry that is neither an address nor a CIDR is named', () => {
  expect(() => compileRanges(['10.0.0.0/8', '10.0.0.0/33'])).toThrow(
    new RangeError("'10.0.0.0/33' is neither an address nor a CIDR such as 10.0.0.0/8"),
  )
})

test('an empty list of ranges has no address', () => {
  expect(compileRanges([])(parseAddress('10.0.0.1') ?? [])).toBe(false)
})
