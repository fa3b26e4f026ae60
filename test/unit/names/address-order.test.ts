import { expect, test } from 'vitest'
import { orderAddresses } from '../../../proxy/names/address-order.ts'

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
