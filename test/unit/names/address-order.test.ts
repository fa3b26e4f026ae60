import { expect, test } from 'vitest'
import { orderAddresses, reachableAddresses } from '../../../proxy/names/address-order.ts'

test.each([
  [
    'without IPv6',
    ['127.0.0.1', '10.0.0.5'],
    ['2001:db8::1', '192.0.2.1', '::1'],
    ['192.0.2.1', '2001:db8::1', '::1'],
  ],
  [
    'with loopback only',
    ['127.0.0.1', '::1'],
    ['127.0.0.1', '::1', '2001:db8::1'],
    ['::1', '127.0.0.1', '2001:db8::1'],
  ],
  [
    'with a global address',
    ['10.0.0.5', '2001:db8::5'],
    ['192.0.2.1', '2001:db8::1'],
    ['2001:db8::1', '192.0.2.1'],
  ],
  [
    'with a private network of IPv6',
    ['10.0.0.5', 'fd00::5'],
    ['2001:db8::1', '192.0.2.1', 'fd12::1'],
    ['fd12::1', '192.0.2.1', '2001:db8::1'],
  ],
  ['twice the same', ['10.0.0.5'], ['192.0.2.2', '192.0.2.1', '192.0.2.2'], ['192.0.2.2', '192.0.2.1']],
])('%s: %j: %j are tried as %j', (_, own, addresses, expected) => {
  expect(orderAddresses(addresses, own)).toEqual(expected)
})

test.each([
  ['without IPv6', ['127.0.0.1', '10.0.0.5'], ['192.0.2.1', '192.0.2.2', '::1', 'fd00::1', '2001:db8::1'], 2],
  ['with loopback only', ['127.0.0.1', '::1', 'fe80::5'], ['::1', '192.0.2.1', 'fd00::1', '2001:db8::1'], 2],
  [
    'with a private network of IPv6',
    ['10.0.0.5', 'fd00::5'],
    ['fd12::1', '2001:db8::1', '192.0.2.1', '::1'],
    3,
  ],
  [
    'with a global address',
    ['10.0.0.5', '2001:db8::5'],
    ['2001:db8::1', 'fd12::1', '192.0.2.1', 'fe80::1'],
    3,
  ],
  ['without IPv6, if there are no others', ['10.0.0.5'], ['2001:db8::1', '2001:db8::2'], 2],
])('%s: %j: of %j the first %i are reachable', (_, own, addresses, count) => {
  expect(reachableAddresses(addresses, own)).toEqual(addresses.slice(0, count))
})
