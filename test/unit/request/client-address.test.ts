import { describe, expect, test } from 'vitest'
import { createAddressReader } from '../../../proxy/request/addresses/client-address.ts'
import {
  formatAddress,
  isInRange,
  parseAddress,
  parseAddressRange,
} from '../../../proxy/request/addresses/ip-address.ts'
import { leastTimeSync, threadCpuUs } from '../../support/load/least-time.ts'
import { peerAt } from '../../support/network/peer-at.ts'

// The attack: a client poses as many clients, and gets a fresh quota with each request, or poses as somebody else, and uses up that
// client's quota.

const reader = createAddressReader(['10.0.0.0/8', '::ffff:192.0.2.0/120', 'fd00::/8', '198.51.100.7'])
const proxy = peerAt(reader, '10.0.0.1')
const stranger = peerAt(reader, '203.0.113.9')

describe('the peer', () => {
  const table: [remoteAddress: string | undefined, address: string, prefix: string, trusted: boolean][] = [
    ['203.0.113.9', '203.0.113.9', '203.0.113.9', false],
    ['10.1.2.3', '10.1.2.3', '10.1.2.3', true],
    ['11.0.0.0', '11.0.0.0', '11.0.0.0', false],
    ['9.255.255.255', '9.255.255.255', '9.255.255.255', false],
    ['198.51.100.7', '198.51.100.7', '198.51.100.7', true],
    ['198.51.100.6', '198.51.100.6', '198.51.100.6', false],
    ['192.0.2.255', '192.0.2.255', '192.0.2.255', true],
    ['192.0.3.0', '192.0.3.0', '192.0.3.0', false],
    ['::ffff:203.0.113.9', '203.0.113.9', '203.0.113.9', false],
    ['::ffff:cb00:7109', '203.0.113.9', '203.0.113.9', false],
    ['::FFFF:10.0.0.1', '10.0.0.1', '10.0.0.1', true],
    ['0:0:0:0:0:ffff:a00:1', '10.0.0.1', '10.0.0.1', true],
    ['2001:db8::1', '2001:db8::1', '2001:db8::/64', false],
    ['2001:0DB8:0:0:1:0:0:1', '2001:db8::1:0:0:1', '2001:db8::/64', false],
    ['2001:db8:0:1::1', '2001:db8:0:1::1', '2001:db8:0:1::/64', false],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64', false],
    ['fdff::1', 'fdff::1', 'fdff::/64', true],
    ['fe00::1', 'fe00::1', 'fe00::/64', false],
    ['fe80::1%eth0', 'fe80::1', 'fe80::/64', false],
    ['::1', '::1', '::/64', false],
    ['::', '::', '::/64', false],
    ['0:0:0:1::', '0:0:0:1::', '0:0:0:1::/64', false],
    ['1:0:0:2::3', '1:0:0:2::3', '1:0:0:2::/64', false],
    ['::1.2.3.4', '::102:304', '::/64', false],
    ['64:ff9b:1::1.2.3.4', '64:ff9b:1::102:304', '64:ff9b:1::/64', false],
    ['64:ff9b::1:102:304', '64:ff9b::1:102:304', '64:ff9b::/64', false],
    ['2002:102:304::1', '2002:102:304::1', '2002:102:304::/64', false],
  ]
  test.each(table)('%# %s', (remoteAddress, address, prefix, trusted) => {
    expect(reader.readPeer(remoteAddress)).toEqual({ address, trusted, client: { address, prefix } })
  })

  test.each([undefined, '', '/run/gateway.sock'])('%s is not an address', (remoteAddress) => {
    expect(reader.readPeer(remoteAddress)).toBeUndefined()
  })

  test('a peer is trusted where every address is, in either family', () => {
    const everybody = createAddressReader(['0.0.0.0/0', '::/0'])
    for (const address of ['203.0.113.9', '::ffff:1.2.3.4', '2001:db8::1'])
      expect(everybody.readPeer(address)?.trusted).toBe(true)
    expect(createAddressReader(['0.0.0.0/0']).readPeer('2001:db8::1')?.trusted).toBe(false)
    expect(createAddressReader([]).readPeer('10.0.0.1')?.trusted).toBe(false)
  })
})

describe('the network that an IPv6 client counts by', () => {
  const table: [bits: number, address: string, prefix: string][] = [
    [32, '2001:db8:ffff::1', '2001:db8::/32'],
    [33, '2001:db8:ffff::1', '2001:db8:8000::/33'],
    [48, '2001:db8:1:2::1', '2001:db8:1::/48'],
    [56, '2001:db8:1:2ff::1', '2001:db8:1:200::/56'],
    [64, '2001:db8:1:2:ffff::', '2001:db8:1:2::/64'],
    [65, '2001:db8:1:2:ffff::', '2001:db8:1:2:8000::/65'],
    [96, '2001:db8::1:2:3:4', '2001:db8::1:2:0:0/96'],
    [127, '2001:db8::ffff', '2001:db8::fffe/127'],
    [128, '2001:db8::ffff', '2001:db8::ffff'],
    // IPv4 has no such prefix, in whatever form it is written.
    [32, '203.0.113.7', '203.0.113.7'],
    [128, '::ffff:203.0.113.7', '203.0.113.7'],
  ]
  test.each(table)('of %i bits: %s is %s', (bits, address, prefix) => {
    const other = createAddressReader(['10.0.0.1'], { ipv6Prefix: bits })
    expect(other.readPeer(address)?.client.prefix).toBe(prefix)
    expect(other.readClientAddress(peerAt(other, '10.0.0.1'), address).prefix).toBe(prefix)
    expect(
      other.readClientField('x-client-ip', `[${address}]:80`.replace(/\[([\d.]+)\]/, '$1'))?.prefix,
    ).toBe(prefix)
  })
})

describe('the client behind a trusted proxy', () => {
  const table: [forwardedFor: string | readonly string[] | undefined, address: string][] = [
    [undefined, '10.0.0.1'],
    ['203.0.113.7', '203.0.113.7'],
    ['  203.0.113.7\t', '203.0.113.7'],
    ['1.1.1.1, 203.0.113.7', '203.0.113.7'],
    ['1.1.1.1,203.0.113.7,10.0.0.2', '203.0.113.7'],
    ['203.0.113.7, 192.0.2.1, 198.51.100.7, fd00::1', '203.0.113.7'],
    // Several lines, in order.
    [['1.1.1.1', '203.0.113.7'], '203.0.113.7'],
    [['203.0.113.7', '10.0.0.2, 10.0.0.3'], '203.0.113.7'],
    [[], '10.0.0.1'],
    // All addresses are trusted.
    ['10.0.0.9', '10.0.0.9'],
    ['10.0.0.9, 10.0.0.2', '10.0.0.9'],
    // Forms of an entry.
    ['203.0.113.7:5555', '203.0.113.7'],
    ['2001:db8::1', '2001:db8::1'],
    ['2001:DB8:0::01', '2001:db8::1'],
    ['[2001:db8::1]', '2001:db8::1'],
    ['[2001:db8::1]:443', '2001:db8::1'],
    ['::ffff:1.2.3.4', '1.2.3.4'],
    ['::ffff:102:304', '1.2.3.4'],
    ['[::ffff:1.2.3.4]:1', '1.2.3.4'],
    ['203.0.113.7, ::ffff:10.0.0.2', '203.0.113.7'],
    // A port without brackets, where it cannot be a part of the address.
    ['::ffff:1.2.3.4:12345', '1.2.3.4'],
    ['::ffff:1.2.3.4:1', '1.2.3.4'],
    ['2001:db8::7:44321', '2001:db8::7'],
    ['2001:db8::7:65535', '2001:db8::7'],
    ['2001:db8:::44321', '2001:db8::'],
    ['2001:db8:1:2:3:4:5:6:44321', '2001:db8:1:2:3:4:5:6'],
    ['203.0.113.7:5555, ::ffff:10.0.0.2:44321, 10.0.0.3:1', '203.0.113.7'],
    // Could be a part of it. The network is the same.
    ['2001:db8::7:4432', '2001:db8::7:4432'],
    // A zone, as proxies written in Go or Node add it for link-local addresses.
    ['fe80::1%eth0', 'fe80::1'],
    ['[fe80::1%eth0]', 'fe80::1'],
    ['[fe80::1%25eth0]:443', 'fe80::1'],
    ['fe80::1%12', 'fe80::1'],
    ['2001:db8::1%br-0a1b2c3d4e5f.100', '2001:db8::1'],
    ['203.0.113.7, fd00::1%eth0', '203.0.113.7'],
    ['203.0.113.7, ::ffff:10.0.0.2%eth0', '203.0.113.7'],
    // A malformed entry ends the search at the last valid entry.
    ['', '10.0.0.1'],
    [' ', '10.0.0.1'],
    [',', '10.0.0.1'],
    ['203.0.113.7,', '10.0.0.1'],
    ['unknown', '10.0.0.1'],
    ['203.0.113.7, unknown, 10.0.0.2', '10.0.0.2'],
    ['203.0.113.7,, 10.0.0.2', '10.0.0.2'],
    [', 10.0.0.2', '10.0.0.2'],
    ['203.0.113.7, _hidden, 10.0.0.2', '10.0.0.2'],
    ...[
      '01.2.3.4',
      '1.2.3.04',
      '1.2.3',
      '1.2.3.4.5',
      '1.2.3.4.',
      '.1.2.3.4',
      '1..2.3',
      '1.2.3.256',
      '1.2.3.1000',
      '0x1.2.3.4',
      '16909060',
      '0x01020304',
      '1.2.3.-4',
      '+1.2.3.4',
      '1.2.3.4/32',
      '1.2.3.4:',
      '1.2.3.4:x',
      '1.2.3.4:123456',
      '1.2.3.4:80:80',
      '[1.2.3.4]',
      '[1.2.3.4]:80',
      '1.2.3.4 5.6.7.8',
      '1.2.3.4;5.6.7.8',
      '"1.2.3.4"',
      '\u00a01.2.3.4',
      '1.2.3.4\u00a0',
      '\uff11.2.3.4',
      'fe80::1%',
      '[fe80::1%]',
      'fe80::1%eth0:443',
      'fe80::1%eth0 x',
      'fe80::1%a/64',
      '[fe80::1]%eth0',
      '%eth0',
      'fe80::1::2%eth0',
      '1.2.3.4%eth0',
      `fe80::1%${'x'.repeat(5000)}`,
      '2001:db8::1::2',
      '2001:db8',
      '1:2:3:4:5:6:7',
      '1:2:3:4:5:6:7:8:9',
      '12345::',
      ':::',
      '::g',
      '::1.2.3.04',
      '::1.2.3',
      '::ffff:1.2.3.4:123456',
      '::ffff:1.2.3.4:',
      '::ffff:1.2.3.4:1:2',
      '::ffff:1.2.3.4:ffff',
      '2001:db8::7:443210',
      '2001:db8::7:44321:44321',
      '1.2.3.4:5:6',
      ':44321',
      '::ffff:1.2.3.4%eth0:44321',
      '[2001:db8::1',
      '2001:db8::1]',
      '[2001:db8::1]443',
      '[]',
      '[[::1]]',
      'localhost',
      'for=1.2.3.4',
      '__proto__',
      '1'.repeat(5000),
      ':'.repeat(5000),
    ].map((entry): [string, string] => [`203.0.113.7, ${entry}, 10.0.0.2`, '10.0.0.2']),
  ]
  test.each(table)('%# %j', (forwardedFor, address) => {
    expect(reader.readClientAddress(proxy, forwardedFor).address).toBe(address)
  })

  test('the client behind a trusted proxy is the peer, whatever headers an untrusted peer sends', () => {
    for (const [forwardedFor] of table)
      expect(reader.readClientAddress(stranger, forwardedFor)).toBe(stranger.client)
  })

  test('the client behind a trusted proxy counts by its /64: a thousand addresses of one are one client', () => {
    const partitions = new Set(
      Array.from({ length: 1000 }, (_, i) => {
        const address = `2001:db8:1:2:${(i * 7).toString(16)}:${i.toString(16)}::${(i + 1).toString(16)}`
        return reader.readClientAddress(proxy, address).prefix
      }),
    )
    expect([...partitions]).toEqual(['2001:db8:1:2::/64'])
  })

  test('the client behind a trusted proxy is looked for through 64 entries and no more', () => {
    const trusted = (count: number): string => '10.0.0.2, '.repeat(count)
    expect(reader.readClientAddress(proxy, `203.0.113.7, ${trusted(62)}10.0.0.3`).address).toBe('203.0.113.7')
    expect(reader.readClientAddress(proxy, `203.0.113.7, ${trusted(63)}10.0.0.3`).address).toBe('10.0.0.2')
  })

  test('the client behind a trusted proxy is read from the end of the header, so that a long header costs no more', () => {
    const field = `${'1.2.3.4, '.repeat(100_000)}203.0.113.7`
    const read = (): void => {
      for (let i = 0; i < 1000; i++) reader.readClientAddress(proxy, field)
    }
    expect(leastTimeSync(500_000, () => threadCpuUs(read))).toBeLessThan(500_000)
  })
})

describe('the client that another header names', () => {
  const behindCdn = createAddressReader(['10.0.0.0/8', 'fd00::/8'], { header: 'cf-connecting-ip' })
  const cdn = peerAt(behindCdn, '10.0.0.1')
  const table: [value: string | undefined, address: string][] = [
    ['203.0.113.7', '203.0.113.7'],
    [' 203.0.113.7\t', '203.0.113.7'],
    ['203.0.113.7:443', '203.0.113.7'],
    ['2001:DB8::7', '2001:db8::7'],
    ['[2001:db8::7]:443', '2001:db8::7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    // The proxy's own request, such as a health check.
    ['10.0.0.9', '10.0.0.9'],
    [undefined, '10.0.0.1'],
    ['', '10.0.0.1'],
    ['unknown', '10.0.0.1'],
    ['203.0.113.7, 203.0.113.8', '10.0.0.1'],
    ['203.0.113.7, 10.0.0.2', '10.0.0.1'],
    ['203.0.113.7,', '10.0.0.1'],
    [', 203.0.113.7', '10.0.0.1'],
    ['203.0.113.7 203.0.113.8', '10.0.0.1'],
    ['203.0.113.007', '10.0.0.1'],
    ['0x7f.1', '10.0.0.1'],
    ['fe80::1%eth0', 'fe80::1'],
    ['1.2.3.4%eth0', '10.0.0.1'],
    ['for=203.0.113.7', '10.0.0.1'],
    ['203.0.113.7/32', '10.0.0.1'],
    ['1'.repeat(100_000), '10.0.0.1'],
  ]
  test.each(table)('%# %j', (value, address) => {
    expect(behindCdn.readClientAddress(cdn, value).address).toBe(address)
  })

  const ofCloudFront: [value: string, address: string][] = [
    ['203.0.113.7:46532', '203.0.113.7'],
    ['2001:db8:1:2:3:4:5:6:46532', '2001:db8:1:2:3:4:5:6'],
    ['2001:db8::7:46532', '2001:db8::7'],
    ['2001:db8::7:1024', '2001:db8::7'],
    ['2001:db8:::1024', '2001:db8::'],
    ['[2001:db8::7]:1024', '2001:db8::7'],
    ['2001:db8::7', '2001:db8::7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2:3:4:5:6'],
    ['2001:db8::7:465321', '10.0.0.1'],
    ['2001:db8::7:1024:1025', '2001:db8::7:1024'],
    [':1024', '10.0.0.1'],
    ['', '10.0.0.1'],
  ]
  test.each(ofCloudFront)('CloudFront writes the port after the address: %j', (value, address) => {
    const behindCloudFront = createAddressReader(['10.0.0.0/8'], { header: 'cloudfront-viewer-address' })
    const peer = peerAt(behindCloudFront, '10.0.0.1')
    expect(behindCloudFront.readClientAddress(peer, value).address).toBe(address)
    const read = behindCloudFront.readClientField('cloudfront-viewer-address', value)?.address
    expect(read ?? '10.0.0.1').toBe(address)
  })

  test('another header names no client if it has several lines', () => {
    expect(behindCdn.readClientAddress(cdn, ['203.0.113.7', '203.0.113.7'])).toBe(cdn.client)
  })

  test('another header names no client if an untrusted peer sends it', () => {
    const alone = peerAt(behindCdn, '203.0.113.9')
    for (const [value] of table) expect(behindCdn.readClientAddress(alone, value)).toBe(alone.client)
  })
})

describe('trusted proxies', () => {
  test.each([
    '10.0.0.0/33',
    '10.0.0/8',
    '::/129',
    'fe80::1%eth0',
    'localhost',
    '',
    '10.0.0.0/',
    '10.0.0.0/08',
    '/8',
  ])('%# %j is neither an address nor a range', (entry) => {
    expect(() => createAddressReader(['10.0.0.0/8', entry])).toThrow(
      new RangeError(`'${entry}' is neither an address nor a CIDR such as 10.0.0.0/8`),
    )
  })

  const ranges: [range: string, inside: string[], outside: string[]][] = [
    ['10.1.2.3/8', ['10.0.0.0', '10.255.255.255'], ['11.0.0.0', '::a00:0']],
    ['172.16.0.0/12', ['172.16.0.0', '172.31.255.255'], ['172.15.255.255', '172.32.0.0']],
    ['203.0.113.9/32', ['203.0.113.9'], ['203.0.113.8', '203.0.113.10']],
    ['203.0.113.8/31', ['203.0.113.9'], ['203.0.113.10']],
    ['::ffff:10.0.0.0/104', ['10.9.9.9'], ['11.0.0.0']],
    ['2001:db8::/33', ['2001:db8:7fff::'], ['2001:db8:8000::', '2001:db9::']],
    ['2001:db8::/32', ['2001:db8:ffff::'], ['2001:db9::']],
    ['::1/128', ['::1'], ['::', '::2', '0.0.0.1']],
    ['::1', ['::1'], ['::3']],
    ['0.0.0.0/0', ['0.0.0.0', '255.255.255.255'], ['::', '2001:db8::']],
  ]
  test.each(ranges)('%# %s', (text, inside, outside) => {
    const contains = (address: string): boolean => {
      const [parsed, range] = [parseAddress(address), parseAddressRange(text)]
      return parsed !== undefined && range !== undefined && isInRange(parsed, range)
    }
    expect(inside.map(contains)).toEqual(inside.map(() => true))
    expect(outside.map(contains)).toEqual(outside.map(() => false))
  })
})

describe('the canonical text of an address (RFC 5952)', () => {
  test.each([
    ['2001:db8:0:0:0:0:2:1', '2001:db8::2:1'],
    ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
    ['2001:0:0:1:0:0:0:1', '2001:0:0:1::1'],
    ['2001:db8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
    ['2001:DB8::ABCD', '2001:db8::abcd'],
    ['::', '::'],
    ['1::', '1::'],
    ['::ffff:0:1.2.3.4', '::ffff:0:102:304'],
    ['::fffe:1.2.3.4', '::fffe:102:304'],
    ['::ffff:0.0.0.0', '0.0.0.0'],
    ['255.255.255.255', '255.255.255.255'],
  ])('%# %s is %s', (text, canonical) => {
    const address = parseAddress(text)
    expect(address && formatAddress(address)).toBe(canonical)
  })
})
