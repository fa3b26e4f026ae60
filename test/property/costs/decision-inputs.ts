import { compileClientLists } from '../../../proxy/limits/clients/lists/client-lists.ts'
import { credentialKeys, tokenKeys } from '../../../proxy/limits/keys/credentials/credential-keys.ts'
import { canonicalCredentials } from '../../../proxy/limits/keys/credentials/credentials.ts'
import { createBodyReader } from '../../../proxy/limits/costs/body-reader.ts'
import { findMember } from '../../../proxy/limits/costs/json-members.ts'
import { headerValues } from '../../../proxy/limits/keys/part-values.ts'
import { prefersHtml } from '../../../proxy/http/fields/accept.ts'
import { linesOf } from '../../../proxy/http/message/headers.ts'
import { acceptsTrailers } from '../../../proxy/http/fields/trailers.ts'
import { createAddressReader } from '../../../proxy/request/addresses/client-address.ts'
import { openText, type CostRow } from '../../support/cost/row.ts'
import { makePolicy } from '../../support/limiter/charges.ts'

/** The default of `MAX_HEADER_SIZE`. */
const headBytes = 16 * 1024
/** The size of a body that states what to reserve, and of a response that states its cost. */
const jsonBytes = 64 * 1024

const ofHead = { largestBytes: headBytes, onlyWhole: true } as const
/** Over HTTP/2 one byte refers to a header of 4 KB that was sent earlier, so a request of 30 bytes can have all 16 KB. */
const namedByIndex = { ...ofHead, maxMs: 4 } as const

const accept: CostRow = {
  ...ofHead,
  name: 'Accept',
  // Refused requests should cost little, and over HTTP/2 one byte refers to a header of 4 KB.
  maxMs: 0.5,
  units: [',', ';', ' ', 'a,', 'text/html;q=0.1,', ';q=', '*/*,', ', ', ' ;', '\t', 'q='],
  atoms: ['text/html', '*/*', ',', ';', 'q=', '0', '1', '.', ' ', '\t', '"', 'A', '{n}'],
  wrap: (content) => `a${content}b`,
  open: openText((value) => prefersHtml(value, 'application/json')),
}

const trailersAccepted: CostRow = {
  ...ofHead,
  name: 'TE',
  units: [',', ' ', ', ', '\t,', 'trailers ', ' trailers x,', ',trailers\t'],
  atoms: [',', ' ', '\t', 'trailers', ';', 'q=1', 'x'],
  wrap: (content) => `a${content}b`,
  open: openText((te) => acceptsTrailers({ headers: { te }, httpVersion: '1.1' })),
}

const numbers = [
  '0',
  '7',
  '_',
  '.',
  'e',
  '0x',
  '+',
  '-',
  '\x85',
  '\x1c',
  '\xb2',
  ' ',
  'f',
  '{',
  '}',
  'urn:',
  'uuid:',
  '{n}',
]

const headers: CostRow = {
  ...namedByIndex,
  name: 'a header that a rule counts by',
  units: [
    ' ',
    '\t',
    '0',
    '7',
    '_',
    '0_',
    '0x',
    'e',
    '.',
    '-',
    '\x85',
    '\xb2',
    'urn:',
    '{',
    'f',
    'f-',
    '\xa0',
    '\x1c',
  ],
  atoms: numbers,
  wrap: (content) => `7${content}x`,
  open: openText((value) => [
    headerValues('x-project', value, addresses),
    headerValues('x-project', `0x${value}`, addresses, true),
    headerValues('x-project', `0${value}`, addresses, true),
  ]),
}
const addresses = createAddressReader([])

/** Texts that look like the header of a JSON Web Token at several offsets. */
const tokens = [
  'eyeyeyeyeyeyeyey.',
  'eyJeyJeyJeyJeyJeyJ.',
  'e%yIe%yIe%yIe%yIe%yI.',
  'eeeeeeeeeeeeeeeee.',
  'eyJhbGcieH0aaaa.',
]

const credentials: CostRow = {
  ...namedByIndex,
  name: 'Authorization',
  units: [
    'xBearer ',
    'bearerBearer',
    'xBearer a,bearer b,Basic c,Token d,JWT e ',
    `Bearer ${btoa('{"alg":"HS256"}')}.{n}a.bbBearer bearer Basic basic Token token `,
    'gAAAAA==',
    'a..b.c.d',
    ' ',
    '\t',
    '=',
    '~',
    'a.',
    '.',
    ',',
    'token="',
    'a ',
    '\x85',
    '\xa0 ',
    '-',
    '_',
    '!',
    '"',
    '= ',
    ' .;',
    ...tokens,
  ],
  atoms: [
    'a',
    '.',
    '=',
    ' ',
    ',',
    ';',
    'token=',
    '"',
    '~',
    '-',
    '_',
    '+',
    '/',
    '\xa0',
    'Bearer ',
    'Basic ',
    'ey',
    'eyJ',
  ],
  wrap: (content) => `Bearer ${content}`,
  open: openText((value) => [canonicalCredentials(value), credentialKeys(value), tokenKeys(value)]),
}

const lists = compileClientLists({
  allowList: Array.from({ length: 8 }, (_, i) => ({
    kind: 'header',
    name: `x-${i}`,
    sha256: i.toString(16).repeat(64),
  })),
  denyList: ['x-0', 'authorization'].map((name) => ({ kind: 'header', name, sha256: '0'.repeat(64) })),
  rules: [],
})
const usual = makePolicy('api', 100, 1000)
const manyOverrides = compileClientLists({
  allowList: [],
  denyList: [],
  rules: [
    {
      policy: usual,
      match: [],
      except: [],
      overrides: Array.from({ length: 1000 }, (_, i) => ({
        clients: [{ kind: 'header', name: 'authorization', sha256: i.toString(16).padStart(64, '0') }],
        policy: makePolicy('api', 10, 1000),
      })),
    },
  ],
})
const nobody = { address: '192.0.2.1', prefix: '192.0.2.1' }

const listedCredentials: CostRow = {
  ...credentials,
  // Two kinds of lists, one of them with a thousand entries, and up to forty spellings of 16 KB to hash.
  maxMs: 10,
  name: 'Authorization that a list denies',
  units: [
    ...credentials.units,
    `\n${btoa('{"alg":"HS256"}')}.{n}a.${'b'.repeat(65)}`,
    '\nBearer {n}',
    '\n,{n}',
    `\nBearer ${btoa('{"alg":"HS256"}')}.a.${'b'.repeat(40)}Bearer bearer Basic {n}Token `,
    `\nBearer ${'b'.repeat(40)}!{n},Bearer !,`,
  ],
  atoms: [...credentials.atoms, '\n', '{n}'],
  open: openText((value) => {
    const rawHeaders = value.split('\n').flatMap((line) => ['authorization', line])
    return [lists.findDenial(nobody, { rawHeaders }), manyOverrides.applying([usual], nobody, { rawHeaders })]
  }),
}

const listed: CostRow = {
  ...ofHead,
  name: 'headers that lists look at',
  units: ['x-0:a\n', 'x-{n}:a\n', ':\n', 'x-0:\n', 'a:a\n'],
  atoms: ['x-0', 'x-1', ':', 'a', ' ', '\n', '{n}'],
  wrap: (content) => content,
  open: openText((text) => {
    const rawHeaders = text.split('\n').flatMap((line) => {
      const colon = line.indexOf(':')
      return colon === -1 ? [] : [line.slice(0, colon), line.slice(colon + 1)]
    })
    return [
      lists.findDenial(nobody, { rawHeaders }),
      lists.allows(nobody, { rawHeaders }),
      linesOf(rawHeaders, 'x-0'),
    ]
  }),
}

const jsonUnits = [
  '[',
  '{"a":',
  '"a":1,',
  '"\\u0061":1,',
  '"{n}":1,',
  '0',
  ' ',
  '"',
  '\\',
  '[],',
  '{},',
  '1e',
  '-',
  '"max_tokens":1,',
]
const jsonAtoms = [
  '{',
  '}',
  '[',
  ']',
  ':',
  ',',
  '"',
  '\\u0061',
  '\\\\',
  'a',
  '1',
  'e',
  ' ',
  '"max":',
  '"b"',
  'null',
  '{n}',
  '\xff',
]

function ifJson(text: string, read: (text: string) => unknown): unknown {
  try {
    JSON.parse(text)
  } catch {
    return undefined
  }
  return read(text)
}

const members: CostRow = {
  name: 'a member of the JSON of a request',
  largestBytes: jsonBytes,
  onlyWhole: true,
  units: jsonUnits,
  atoms: jsonAtoms,
  wrap: (content) => `{"x":{${content}"z":1},"max":{"tokens":1}}`,
  open: openText((text) => ifJson(text, (json) => findMember(json, ['max', 'tokens']))),
}

const listsInJson: CostRow = {
  ...members,
  name: 'lists in the JSON of a request',
  units: ['[],', '{},', '"a",', '1,', 'null,', '[[]],', '{"max":1},', '"\\u0061",', ' ', '0.1e1,'],
  wrap: (content) => `{"x":[${content}1],"max":{"tokens":1}}`,
}

const costs: CostRow = {
  name: 'what the JSON of a response says that it cost',
  largestBytes: jsonBytes,
  units: [...jsonUnits, '[],', '1,'],
  atoms: jsonAtoms,
  wrap: (content) => `{"x":[${content}1],"usage":{"total":1}}`,
  open: () => costReader('application/json'),
}

const events: CostRow = {
  name: 'what the events of a response say that they cost',
  largestBytes: jsonBytes,
  units: [
    '\n',
    '\r',
    'data:\n',
    'data:{"total":1}\n',
    'data:{"total":1}\n\n',
    ':\n',
    'data:"total"\n',
    'data',
    '\r\n',
    ' ',
  ],
  atoms: ['data:', '\n', '\n', '\r', '"total"', '{"usage":{"total":1}}', ':', ' ', 'a', 'event:', '{n}'],
  wrap: (content) => content,
  open: () => costReader('text/event-stream'),
}

function costReader(type: string): ReturnType<CostRow['open']> {
  const reader = createBodyReader(['usage.total', 'x.0', 'x.a'], ['content-type', type], true)
  return {
    take(piece) {
      reader.push(piece)
      Object.assign(this, { reader })
    },
  }
}

const memberCosts: CostRow = {
  ...costs,
  name: 'members beside what the JSON of a response says that it cost',
  units: [...jsonUnits, '"usage":{"total":1},', '"usage":1,', '"us\\u0061ge":{},', '"usag', '9', '"total":'],
  wrap: (content) => `{${content}"usage":{"total":1}}`,
}

const hiddenInEvents: CostRow = {
  ...events,
  name: 'events of many kinds',
  units: ['data:{n}\n\n', 'data:"{n}"\r\r', 'data:{"{n}":1}\r\n\r\n', 'data\n\n'],
}

export const rows: readonly CostRow[] = [
  ...[accept, trailersAccepted, headers, credentials, listedCredentials, listed],
  ...[members, listsInJson, costs, memberCosts, events, hiddenInEvents],
]
