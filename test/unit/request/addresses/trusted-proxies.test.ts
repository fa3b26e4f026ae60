import { describe, expect, test } from 'vitest'
import { createAddressReader } from '../../../../proxy/request/addresses/client-address.ts'
import {
  isHostName,
  namedNetworks,
  sortTrustedProxies,
} from '../../../../proxy/request/addresses/trusted-proxies.ts'
import { peerAt } from '../../../support/network/peer-at.ts'

test('named networks become their ranges, and hosts stay names for the lookup', () => {
  expect(sortTrustedProxies(['10.0.0.0/8', 'loopback', 'Nginx', '::1', 'nginx'])).toEqual({
    ranges: ['10.0.0.0/8', '127.0.0.0/8', '::1', '::1'],
    hosts: ['nginx'],
  })
})

describe('a network with a name', () => {
  const table: [name: string, inside: string[], outside: string[]][] = [
    ['loopback', ['127.0.0.1', '127.255.255.255', '::1'], ['128.0.0.1', '::2', '10.0.0.1']],
    [
      'private',
      ['10.255.0.1', '172.16.0.1', '172.31.255.255', '192.168.0.1', 'fd00::1', 'fc00::1'],
      ['172.32.0.1', '192.169.0.1', '100.64.0.1', '127.0.0.1', '169.254.0.1', 'fe80::1', '2001:db8::1'],
    ],
    [
      'cloudflare',
      ['104.16.0.1', '104.27.255.255', '172.71.255.255', '2606:4700::1', '2a06:98c7::1'],
      ['104.28.0.0', '172.72.0.0', '1.1.1.1', '2606:4701::1', '2a06:98c8::1', '10.0.0.1'],
    ],
  ]
  test.each(table)('%s', (name, inside, outside) => {
    const reader = createAddressReader(sortTrustedProxies([name]).ranges)
    for (const address of inside) expect(peerAt(reader, address).trusted, address).toBe(true)
    for (const address of outside) expect(peerAt(reader, address).trusted, address).toBe(false)
  })

  test('a program that runs at Cloudflare is a client, which cannot name another one', () => {
    const reader = createAddressReader(sortTrustedProxies(['cloudflare', '2a06:98c0:3600::103']).ranges)
    const peer = peerAt(reader, '172.71.0.1')
    for (const worker of ['2a06:98c0:3600::103', '[2A06:98C0:3600:0:0:0:0:103]:443'])
      for (const chain of [worker, `198.51.100.7, ${worker}`, `198.51.100.7, ${worker}, 172.71.0.2`])
        expect(reader.readClientAddress(peer, chain).address, chain).toBe('2a06:98c0:3600::103')
    expect(reader.readClientAddress(peer, '198.51.100.7, 2a06:98c0:1::1').address).toBe('198.51.100.7')
    expect(peerAt(reader, '2a06:98c0:3600::103').trusted).toBe(false)
  })

  test('a network with a name has ranges only', () => {
    for (const ranges of namedNetworks.values()) expect(sortTrustedProxies(ranges).hosts).toEqual([])
  })
})

test.each([
  'nginx',
  'lb.example.internal',
  'lb.example.internal.',
  'my_app',
  'a-1',
  '1password',
  'x'.repeat(63),
])('%s can be the name of a host', (name) => expect(isHostName(name)).toBe(true))

test.each([
  '',
  '.',
  'a..b',
  '-a',
  '10',
  '10.0.0',
  '1.2.3.4.5',
  '10.0.0.0x7f',
  '10.0.0.1.',
  'a:80',
  'a b',
  'ä',
  '*',
])('%j cannot be the name of a host', (name) => expect(isHostName(name)).toBe(false))

test('a host name must not be too long', () => {
  expect(isHostName('x'.repeat(64))).toBe(false)
  expect(isHostName(Array.from({ length: 130 }, () => 'x').join('.'))).toBe(false)
})
