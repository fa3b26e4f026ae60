import fc from 'fast-check'
import { createAddressReader } from '../../proxy/request/addresses/client-address.ts'
import { formatAddress, parseAddress } from '../../proxy/request/addresses/ip-address.ts'
import { readAuthority } from '../../proxy/request/authority.ts'
import { readTarget } from '../../proxy/request/target/target.ts'
import { pathReaders } from '../support/http/path-readers.ts'
import { peerAt } from '../support/network/peer-at.ts'
import { testSeed } from '../support/random/seed.ts'

// Fuzzes the functions that read targets and addresses, for ten minutes unless FUZZ_MINUTES is set: `npm run fuzz`. Prints its seed, and
// any input that violates one of the properties below. Add such an input to the vectors.

const minutes = Number(process.env['FUZZ_MINUTES'] ?? 10)
const seed = testSeed()

const targetPieces = [
  ...[
    '/',
    '//',
    '.',
    '..',
    ';',
    ';x=y',
    '%',
    '%2f',
    '%2F',
    '%5c',
    '%2e',
    '%2E',
    '%3b',
    '%25',
    '%252f',
    '%00',
    '%0a',
    '%20',
  ],
  ...[
    'a',
    'A',
    'login',
    '%6c',
    '%4C',
    '%c4%b1',
    '%ff',
    '%c0%af',
    '?',
    '#',
    '\\',
    ' ',
    '*',
    ':',
    '@',
    'http://',
    'h',
    '\xe9',
  ],
]
const addressPieces = [
  ...[
    '1.2.3.4',
    '127.0.0.1',
    '0',
    '00',
    '255',
    '256',
    '.',
    ':',
    '::',
    'ffff',
    '::ffff:',
    'fe80',
    '%eth0',
    '%25',
    '[',
    ']',
  ],
  ...[',', ' ', '\t', ':80', '/64', 'x', '0x7f', '-1', 'unknown', '10.0.0.1', '2001:db8', 'for=', '"', '\0'],
]

const ofPieces = (pieces: readonly string[]): fc.Arbitrary<string> =>
  fc
    .array(fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...pieces) }, fc.string({ maxLength: 3 })), {
      maxLength: 16,
    })
    .map((parts) => parts.join(''))

const targets = ofPieces(targetPieces)
const methods = fc.constantFrom('GET', 'POST', 'OPTIONS', 'CONNECT')
const addresses = ofPieces(addressPieces)
const trusting = createAddressReader(['127.0.0.0/8', '::1', '10.0.0.0/8'])
const loose = (path: string): string => path.toLowerCase().replace(/%(?:25)+/g, '%')

/** Each property throws or returns false for an input that violates it. */
const properties = {
  'a target is refused, or is safe on a request line and stays what it is': fc.property(
    fc.oneof(
      targets,
      targets.map((path) => `/${path}`),
      targets.map((path) => `http://a/${path}`),
    ),
    methods,
    (raw, method) => {
      const target = readTarget(method, raw)
      if (typeof target === 'string') return target !== ''
      const again = readTarget(method, target.forwardTarget)
      return (
        /^(?:\/[\x21-\x7e]*|\*)$/.test(target.forwardTarget) &&
        typeof again !== 'string' &&
        again.forwardTarget === target.forwardTarget
      )
    },
  ),
  'what a backend reads as /login is matched as /login': fc.property(targets, (path) => {
    const target = readTarget('GET', `/${path}`)
    if (typeof target === 'string') return true
    const readings = [target.matchPath, ...target.otherMatchPaths]
    return Object.values(pathReaders).every((read) => {
      const seen = read(target.path)
      return seen === undefined || loose(seen) !== '/login' || readings.includes('/login')
    })
  }),
  'an authority is refused, or is a host and a port': fc.property(
    fc.oneof(ofPieces([...addressPieces, 'a', '-', '_']), fc.string()),
    (text) => {
      const authority = readAuthority(text)
      return (
        authority === undefined || /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/.test(authority)
      )
    },
  ),
  'an address is refused, or has one spelling that comes back': fc.property(addresses, (text) => {
    const address = parseAddress(text)
    if (!address) return true
    const again = parseAddress(formatAddress(address))
    return again !== undefined && formatAddress(again) === formatAddress(address)
  }),
  'a client is the last address that no trusted proxy vouches against': fc.property(
    addresses,
    fc.ipV4().filter((address) => !/^(?:127|10)\./.test(address)),
    (written, last) => {
      const peer = peerAt(trusting, '127.0.0.1')
      return trusting.readClientAddress(peer, `${written}, ${last}`).address === last
    },
  ),
  'a client that nobody vouches for is its own address': fc.property(addresses, (written) => {
    const peer = peerAt(trusting, '192.0.2.1')
    return trusting.readClientAddress(peer, written).address === '192.0.2.1'
  }),
} satisfies Record<string, fc.IProperty<[string, string]> | fc.IProperty<[string]>>

const untilMs = performance.now() + minutes * 60_000
let found = 0
let inputs = 0
console.log(`TEST_SEED=${seed}, ${minutes} minutes`)
for (let round = 0; performance.now() < untilMs && found === 0; round++) {
  for (const [name, property] of Object.entries(properties)) {
    const result = fc.check(property as fc.IProperty<unknown[]>, { seed: seed + round, numRuns: 5_000 })
    inputs += result.numRuns
    if (!result.failed) continue
    found++
    console.log(`${name}: not for ${JSON.stringify(result.counterexample)}`)
  }
}
console.log(`${inputs} inputs, ${found} found`)
process.exitCode = found > 0 ? 1 : 0
