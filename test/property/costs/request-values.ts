import { MAX_TAGS, privateReference } from '../../../proxy/http/forward/private-references.ts'
import { createAddressReader } from '../../../proxy/request/addresses/client-address.ts'
import { comparableHost } from '../../../proxy/request/host.ts'
import { readAuthority } from '../../../proxy/request/authority.ts'
import { readTarget } from '../../../proxy/request/target/target.ts'
import { cookieValues } from '../../../proxy/request/values/cookie-values.ts'
import { hideCookies } from '../../../proxy/request/values/hidden-cookies.ts'
import { queryValues } from '../../../proxy/request/values/query-values.ts'
import { createPathValues } from '../../../proxy/limits/rules/path-values.ts'
import { openText, type CostRow } from '../../support/cost/row.ts'

/** The default of `MAX_HEADER_SIZE`. */
const largestBytes = 16 * 1024
const whole = { largestBytes, onlyWhole: true } as const
/** Over HTTP/2 one byte refers to a header of 4 KB that was sent earlier, so a request of 30 bytes can have all 16 KB. */
const namedByIndex = { maxMs: 2 } as const

const escapes = [
  '%00',
  '%25',
  '%2541',
  '%41',
  '%u0041',
  '%uFFFF',
  '%',
  '%FF',
  '%C3%9F',
  '%CD%85',
  '%E1%BE%B3',
  '\xff',
  '\xc3',
  '+',
]

const cookies: CostRow = {
  ...whole,
  ...namedByIndex,
  name: 'cookies that a rule counts by',
  units: [
    ...['sid=a%00 ', 'sid="', 'sid=', '=', '= ', ' ', '"', '\\"', '%u0041', 'sid="\\', 'sid =', '%73id=;'],
    ...['sid=a%00{n} ', 'sid=%00{n},', '"sid=%00{n}', 'sid={n};', 'a{n}=b; ', '\xffa', '%2525', 'sid[]=&'],
    ...['sid%00="', '%25\xff,sid%00=%00', ' a{n}%u0041\xc3=', '%73ie=;'],
    ...['\\"sid=1', '\\"\\sid=1', 'sid=1\\"', 'sid=\\', '\\sid='],
    ...[
      'sid=%E1%BE%B3%00{n}; ',
      'sid="\\341\\276\\263{n}',
      '%E1%BE%B3',
      '%CD%85',
      '\xe1\xbe\xb3',
      '\\303\\237',
      '%E1%BE%B3%00%25u00df\\%2525',
      '"\\3%2536%E1%BE%B3',
    ],
  ],
  atoms: [
    ...escapes,
    ...['sid=', 'sid=', '%73id=', 'sid%00=', '[sid', ']', '=', ' ', ',', ';', '&', '"', '\\', 'a', '{n}'],
  ],
  wrap: (content) => `sid=${content}; sid=x`,
  open: openText((header) => cookieValues(header, 'sid', 8)),
}

const nested: CostRow = {
  ...cookies,
  name: 'nested arrays in a cookie that a rule counts by',
  units: ['[', '[0,', '["",[],', '[[],'],
  atoms: ['[', '[', '0,', '[],'],
  wrap: (content) => `sid=j:${content}0${']'.repeat(content.split('[').length - content.split(']').length)}`,
}

const { withoutCookies } = hideCookies(['sid'])

const hidden: CostRow = { ...cookies, name: 'cookies of which one is hidden', open: openText(withoutCookies) }

/** The separators before a hidden cookie are removed with it. */
const separatorsBeforeHidden: CostRow = {
  ...hidden,
  name: 'separators in a cookie before one that is hidden',
  units: [' ', ',', ', '],
  atoms: [' ', ',', '&', 'a'],
  wrap: (content) => `a=${content}b,sid=x`,
}

const queries: CostRow = {
  ...whole,
  // Half of `MAX_HEADER_SIZE`.
  largestBytes: 8 * 1024,
  maxMs: 1,
  name: 'a query that a rule counts by',
  units: [
    ...['sid=a%00&', '%73id=&', 'sid=;', ';&', '&', '=', '?', '[', ']', '[sid]=', '%5B', '%5Bsid%5D=a%00&'],
    ...['sid=a%00{n}&', 'sid={n}&', '[[', '%253', '%2525', '%u0041', '\xffa', '+', '%\xc3%73id=;', '%73ie=&'],
    ...['sid=%E1%BE%B3%00{n}&', '%E1%BE%B3', '%CD%85', '%C3%9F', '%EF%B7%BA'],
  ],
  atoms: [...escapes, 'sid=', 'sid=', '%73id=', 'sid[', ']', '[', '?', '=', ';', '&', 'a', '{n}'],
  wrap: (content) => `/x?sid=${content}`,
  open: openText((target) => queryValues(target, 'sid', 8)),
}

const escapedQueries: CostRow = {
  ...queries,
  name: 'a query after an escaped question mark',
  units: ['%3F', '%3Fsid=a%00&', '%3F%73id=;'],
  wrap: (content) => `/x%3Fsid=${content}`,
}

const targets: CostRow = {
  name: 'a target, and the value of a name in its path',
  // Half of `MAX_HEADER_SIZE`.
  largestBytes: 8 * 1024,
  onlyWhole: true,
  units: [
    '/',
    '/.',
    '/..',
    '/a/..',
    ';',
    '/;',
    '%2F',
    '%3B',
    '.',
    '/a',
    '%252F',
    '%20',
    '/x%2F..',
    ';/',
    '%3F',
    '%23',
  ],
  atoms: [
    ...['/', '/', '.', '..', ';', '%2F', '%3B', '%3F', '%23', '%25', '%20', 'a', 'ſ', '%C5%BF', '=', '{n}'],
  ],
  wrap: (content) => `/users/${content}/x`,
  open: openText((raw) => {
    const target = readTarget('GET', raw)
    return typeof target === 'string' ? target : [target, pathValues(target)]
  }),
}
const pathValues = createPathValues(['/users/:id/*', '/users/:id'], 'id')

const proxies = createAddressReader(['10.0.0.0/8', 'fd00::/8'])
const balancer = proxies.readPeer('10.0.0.1')
const addressAtoms = [
  '10.0.0.1',
  'fd00::1',
  '[fd00::1]',
  ':80',
  '%eth0',
  ',',
  ' ',
  '\t',
  '"',
  '1.2.3.4',
  '::',
  ':',
  '.',
  '0',
]

const chains: CostRow = {
  ...whole,
  name: 'X-Forwarded-For',
  units: [
    '10.0.0.1,',
    ',',
    ' ',
    ' ,',
    '10.0.0.1 , ',
    '[fd00::1]:1,',
    'fd00::1%eth0,',
    '0',
    ':',
    '::',
    '[',
    '%',
    '"',
  ],
  atoms: addressAtoms,
  wrap: (content) => `1.2.3.4, ${content}10.0.0.2`,
  open: openText((value) => balancer && proxies.readClientAddress(balancer, value)),
}

const manyChains: CostRow = {
  ...chains,
  name: 'many lines of X-Forwarded-For',
  open: openText((value) => balancer && proxies.readClientAddress(balancer, value.split(','))),
}

const addresses: CostRow = {
  ...chains,
  name: 'a header with one address',
  open: openText((value) => proxies.readClientField('x-client-ip', value)),
}

const addressesWithPorts: CostRow = {
  ...addresses,
  name: 'the header of CloudFront, whose addresses have a port',
  open: openText((value) => proxies.readClientField('cloudfront-viewer-address', value)),
}

const hosts: CostRow = {
  ...whole,
  name: 'a host',
  units: ['.', 'a.', 'a', ':', '[', '0', '[::', '1:', '-', 'a:', '\xff'],
  atoms: ['a', '.', ':', '[', ']', '0', '::', '1', '-', '_', 'A', '{n}'],
  wrap: (content) => content,
  open: openText((text) => {
    const authority = readAuthority(text)
    return authority === undefined ? undefined : comparableHost(authority)
  }),
}

/** WebDAV references that a route with another host or path in the backend rewrites. Each is read like the target of a request. */
const references = ['destination', 'if'].map((name): CostRow => ({
  ...whole,
  name: `${name} that is rewritten`,
  units: [
    '<',
    '<>',
    '<a>',
    '</%41>',
    '(',
    '("',
    ')',
    '"',
    '//',
    '//a',
    'http://a/',
    '<//a/%2541>',
    '\\',
    '/..',
    '%',
  ],
  atoms: [...escapes, '<', '>', '(', ')', '"', '[', ']', '/', '..', '//a', 'http:', ' ', ';', 'a', '{n}'],
  wrap: (content) => `<//a/${content}`,
  open: openText((text) =>
    [text, text.slice(1)].map((value) =>
      privateReference(name, value, {
        publicHost: 'a',
        sentHost: 'b',
        toPrivate: (path) => {
          const target = readTarget('GET', path, { headers: {} })
          return typeof target === 'string' ? undefined : target.forwardTarget
        },
        tagsLeft: MAX_TAGS,
      }),
    ),
  ),
}))

export const rows: readonly CostRow[] = [
  ...references,
  ...[cookies, nested, hidden, separatorsBeforeHidden, queries, escapedQueries, targets],
  ...[chains, manyChains, addresses, addressesWithPorts, hosts],
]
