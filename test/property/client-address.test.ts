import fc from 'fast-check'
import { BlockList, isIP, isIPv4 } from 'node:net'
import { describe, expect, test } from 'vitest'
import { createAddressReader } from '../../proxy/request/addresses/client-address.ts'
import {
  formatAddress,
  isInRange,
  parseAddress,
  parseClientRange,
} from '../../proxy/request/addresses/ip-address.ts'
import { peerAt } from '../support/network/peer-at.ts'
import { runs } from '../support/random/runs.ts'

const trustedProxies = ['10.0.0.0/8', 'fd00::/8', '192.0.2.1']
const reader = createAddressReader(trustedProxies)
const proxy = peerAt(reader, '10.0.0.1')
const bytes = fc.string({ unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)) })
const many = { numRuns: runs(2000) }

const octet = fc.integer({ min: 0, max: 255 })
const ipv4 = fc.tuple(octet, octet, octet, octet).map((octets) => octets.join('.'))
const group = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 0xffff }))
const groups = fc.tuple(group, group, group, group, group, group, group, group)
const mapped = fc.oneof(
  ipv4.map((address) => `::ffff:${address}`),
  ipv4.map((address) => `0:0:0:0:0:FFFF:${address}`),
  fc.tuple(group, group).map(([high, low]) => `::ffff:${high.toString(16)}:${low.toString(16)}`),
)
const ipv6 = fc.oneof(
  fc.ipV6().filter((address) => !address.includes('%')),
  groups.map((address) => address.map((value) => value.toString(16)).join(':')),
)
const trusted = fc.oneof(
  fc.tuple(octet, octet).map(([a, b]) => `10.${a}.0.${b}`),
  fc.tuple(octet, octet).map(([a, b]) => `::ffff:10.${a}.${b}.1`),
  group.map((value) => `fd00::${value.toString(16)}`),
)
const address = fc.oneof(ipv4, ipv6, mapped, trusted)
const malformed = fc.constantFrom(
  '',
  'unknown',
  '_x',
  '1.2.3',
  '01.2.3.4',
  '::1%1',
  '1.2.3.4.5',
  '[::1',
  'x',
  '0x7f.1',
)
const almost = fc.string({
  unit: fc.constantFrom('1', '0', '2', '255', '.', ':', '::', 'f', '[', ']', ' ', '/'),
})
const entry = fc.oneof(
  { weight: 4, arbitrary: trusted },
  { weight: 4, arbitrary: address },
  { weight: 1, arbitrary: ipv4.map((host) => `${host}:8080`) },
  { weight: 1, arbitrary: ipv6.map((host) => `[${host}]:8080`) },
  { weight: 1, arbitrary: fc.oneof(ipv6, trusted).map((host) => `${host}%eth0`) },
  { weight: 1, arbitrary: ipv6.map((host) => `[${host}%25en0]:8080`) },
  { weight: 1, arbitrary: malformed },
  { weight: 1, arbitrary: almost },
  { weight: 1, arbitrary: fc.string() },
)
const field = fc.array(entry, { maxLength: 6 }).map((entries) => entries.join(', '))

describe('an address', () => {
  test('an address is valid exactly where Node says so, except with a zone', () => {
    fc.assert(
      fc.property(fc.oneof(address, almost, malformed, fc.string()), (text) => {
        expect(parseAddress(text) !== undefined).toBe(isIP(text) !== 0 && !text.includes('%'))
      }),
      many,
    )
  })

  test('an address has the same canonical text as in Node', () => {
    fc.assert(
      fc.property(address, (text) => {
        expect(formatted(text)).toBe(canonical(text))
        expect(formatted(canonical(text))).toBe(canonical(text))
      }),
      many,
    )
  })

  test('an IPv4 address is the same mapped to IPv6, in dots or in hex', () => {
    fc.assert(
      fc.property(octet, octet, octet, octet, (a, b, c, d) => {
        const dotted = `${a}.${b}.${c}.${d}`
        const hex = `::ffff:${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`
        expect([`::ffff:${dotted}`, hex].map((text) => peerAt(reader, text))).toEqual(
          [dotted, dotted].map((text) => peerAt(reader, text)),
        )
      }),
      many,
    )
  })

  test('an IPv6 address counts with all of its /64 and with nobody else', () => {
    const quad = fc.tuple(group, group, group, group)
    const partitionOf = (parts: readonly number[]): string =>
      peerAt(reader, parts.map((value) => value.toString(16)).join(':')).client.prefix
    fc.assert(
      fc.property(quad, quad, quad, quad, (network, one, other, elsewhere) => {
        fc.pre(network.some((value) => value !== 0) && elsewhere.some((value) => value !== 0))
        const here = partitionOf([...network, ...one])
        expect(partitionOf([...network, ...other])).toBe(here)
        expect(partitionOf([...elsewhere, ...one]) === here).toBe(elsewhere.join() === network.join())
      }),
      many,
    )
  })
})

describe('the address of a client behind NAT64', () => {
  const octets = fc.tuple(octet, octet, octet, octet)
  const spelled = ([a, b, c, d]: readonly number[]): { dotted: string; nat64: string[] } => {
    const [dotted, hex] = [octetsOf(a, b, c, d), `${hexOf(a, b)}:${hexOf(c, d)}`]
    return { dotted, nat64: [`64:ff9b::${dotted}`, `64:ff9b::${hex}`, `0064:FF9B:0:0:0:0:${hex}`] }
  }
  const octetsOf = (...all: (number | undefined)[]): string => all.join('.')
  const hexOf = (high = 0, low = 0): string => ((high << 8) | low).toString(16)
  const notGlobal = new BlockList()
  for (const [network, bits] of [
    ['0.0.0.0', 8],
    ['10.0.0.0', 8],
    ['100.64.0.0', 10],
    ['127.0.0.0', 8],
    ['169.254.0.0', 16],
    ['172.16.0.0', 12],
    ['192.168.0.0', 16],
    ['224.0.0.0', 3],
  ] as const)
    notGlobal.addSubnet(network, bits)
  const first = fc.constantFrom(0, 10, 100, 127, 169, 172, 192, 203, 224, 255)
  const drawn = fc.oneof(octets, fc.tuple(first, octet, octet, octet))

  test('the address of a client behind NAT64 is the IPv4 address, unless that is not global', () => {
    fc.assert(
      fc.property(drawn, (ipv4) => {
        const { dotted, nat64 } = spelled(ipv4)
        const address = notGlobal.check(dotted) ? canonical(nat64[0] ?? '') : dotted
        for (const text of nat64) {
          expect(peerAt(reader, text).client.address).toBe(address)
          expect(reader.readClientAddress(proxy, `1.1.1.1, ${text}`).address).toBe(address)
          expect(reader.readClientField('x-client-ip', `[${text}]:1`)?.address).toBe(address)
        }
      }),
      many,
    )
  })

  test('the address of a client behind NAT64 is in the same ranges in either spelling of both', () => {
    const texts = ({ dotted, nat64 }: ReturnType<typeof spelled>): string[] => [dotted, ...nat64]
    fc.assert(
      fc.property(drawn, drawn, fc.integer({ min: 1, max: 32 }), (client, network, bits) => {
        const [one, other] = [spelled(client), spelled(network)]
        fc.pre(!notGlobal.check(one.dotted) && !notGlobal.check(other.dotted))
        const ranges = texts(other).map((text) =>
          parseClientRange(`${text}/${bits + (text.includes(':') ? 96 : 0)}`),
        )
        const found = ranges.map((range) =>
          texts(one).map((text) => {
            const address = parseAddress(reader.readClientField('x-client-ip', text)?.address ?? '')
            return range !== undefined && address !== undefined && isInRange(address, range)
          }),
        )
        expect(new Set(found.flat()).size).toBe(1)
      }),
      many,
    )
  })

  test('NAT64 makes nobody a trusted proxy', () => {
    const everyIpv4 = createAddressReader(['0.0.0.0/0'], {
      hosts: { has: (address) => !address.includes(':') },
    })
    fc.assert(
      fc.property(drawn, (ipv4) => {
        for (const text of spelled(ipv4).nat64) {
          const peer = peerAt(everyIpv4, text)
          expect(peer.trusted).toBe(false)
          expect(everyIpv4.readClientAddress(peer, '1.1.1.1')).toEqual(peer.client)
          const hop = `1.1.1.1, ${text}`
          expect(everyIpv4.readClientAddress(peerAt(everyIpv4, '10.0.0.1'), hop)).toEqual(peer.client)
        }
      }),
      many,
    )
  })
})

describe('the client address', () => {
  test('the client address is the one that a simple walk along the header finds', () => {
    fc.assert(
      fc.property(fc.oneof(field, fc.array(field, { maxLength: 3 })), (forwardedFor) => {
        expect(reader.readClientAddress(proxy, forwardedFor).address).toBe(
          naiveClient('10.0.0.1', forwardedFor),
        )
      }),
      many,
    )
  })

  test('the client address is the peer’s own, whatever a peer that is not trusted sends', () => {
    fc.assert(
      fc.property(address, fc.oneof(field, fc.string()), (peerAddress, forwardedFor) => {
        const peer = peerAt(reader, peerAddress)
        fc.pre(!peer.trusted)
        expect(reader.readClientAddress(peer, forwardedFor)).toEqual(peer.client)
      }),
      many,
    )
  })

  test('the client address is not changed by entries that a client puts to the left of those a trusted proxy vouches for', () => {
    const chain = fc.array(trusted, { maxLength: 4 })
    fc.assert(
      fc.property(fc.oneof(field, fc.string()), address, chain, (sent, client, proxies) => {
        fc.pre(!peerAt(reader, client).trusted)
        const vouched = [client, ...proxies].join(', ')
        const alone = reader.readClientAddress(proxy, vouched)
        expect(alone.address).toBe(canonical(client))
        expect(reader.readClientAddress(proxy, `${sent}, ${vouched}`)).toEqual(alone)
        expect(reader.readClientAddress(proxy, [sent, vouched])).toEqual(alone)
      }),
      many,
    )
  })

  test('the client address in another header is the one address there, else the peer’s own', () => {
    const behindCdn = createAddressReader(trustedProxies, { header: 'cf-connecting-ip' })
    const cdn = peerAt(behindCdn, '10.0.0.1')
    fc.assert(
      fc.property(address, (client) => {
        const { address: read } = behindCdn.readClientAddress(cdn, client)
        expect(read).toBe(canonical(client))
      }),
      many,
    )
    fc.assert(
      fc.property(fc.array(fc.oneof(field, bytes), { minLength: 2, maxLength: 4 }), (lines) => {
        expect(behindCdn.readClientAddress(cdn, lines)).toBe(cdn.client)
        expect(behindCdn.readClientAddress(cdn, lines.join(', '))).toBe(cdn.client)
      }),
      many,
    )
  })

  test('the client address is read without an exception', () => {
    const peer = fc.oneof(fc.string(), address, fc.constant(undefined))
    fc.assert(
      fc.property(peer, fc.oneof(field, bytes, fc.array(fc.string())), (at, sent) => {
        const peer = reader.readPeer(at)
        if (!peer) return
        const { address: text, prefix } = reader.readClientAddress(peer, sent)
        expect(isIP(text)).not.toBe(0)
        expect(prefix.replace(/\/64$/, '')).toMatch(/^(?:[\d.]+|[\da-f:]+)$/)
      }),
      { numRuns: runs(500) },
    )
  })
})

function formatted(text: string): string | undefined {
  const parsed = parseAddress(text)
  return parsed && formatAddress(parsed)
}

/** The text of RFC 5952, from the URL parser, which writes IPv6 hosts in that form; IPv4 is dotted, whether mapped or not. */
function canonical(text: string): string {
  if (isIPv4(text)) return text
  const host = new URL(`http://[${text}]/`).hostname.slice(1, -1)
  const [, high, low] = /^::ffff:([\da-f]+):([\da-f]+)$/.exec(host) ?? []
  if (high === undefined || low === undefined) return host
  const [h, l] = [Number.parseInt(high, 16), Number.parseInt(low, 16)]
  return [h >> 8, h & 255, l >> 8, l & 255].join('.')
}

/** The slow, obvious search, with Node's own parser and block list. */
function naiveClient(peer: string, forwardedFor: string | readonly string[]): string {
  const list = new BlockList()
  list.addSubnet('10.0.0.0', 8, 'ipv4')
  list.addSubnet('fd00::', 8, 'ipv6')
  list.addAddress('192.0.2.1', 'ipv4')
  const hops = [forwardedFor].flat().join(',').split(',')
  let last = peer
  for (const hop of hops.reverse()) {
    const text = hop.replace(/^[ \t]+|[ \t]+$/g, '')
    const bare = text
      .replace(/^(\d+\.\d+\.\d+\.\d+):\d{1,5}$/, '$1')
      .replace(/^\[(.*:.*)\](:\d{1,5})?$/, '$1')
      .replace(/^([\da-f:.]*:[\da-f:.]*)%[\w.~%-]{1,64}$/i, '$1')
    if (isIP(bare) === 0 || bare.includes('%')) return last
    last = canonical(bare)
    if (!list.check(last, isIPv4(last) ? 'ipv4' : 'ipv6')) return last
  }
  return last
}
