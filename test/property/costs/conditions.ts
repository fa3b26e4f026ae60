import { limits } from '../../../proxy/config/rules/limits.ts'
import { headersOf } from '../../../proxy/http/message/headers.ts'
import { compileConditions } from '../../../proxy/limits/conditions/conditions.ts'
import { noAddressLists } from '../../../proxy/request/addresses/lists/address-lists.ts'
import { readTarget, type Target } from '../../../proxy/request/target/target.ts'
import { doAtOnce } from '../../../shared/steps.ts'
import { openText, type CostRow } from '../../support/cost/row.ts'

/** The default of `MAX_HEADER_SIZE`. */
const whole = { largestBytes: 16 * 1024, onlyWhole: true, maxMs: 3 } as const
const client = { address: '192.0.2.1', prefix: '192.0.2.1' }

/** Each kind of test in its own rule, because a rule stops at the first unmet condition. */
function conditionsOn(kind: object): (target: Target, rawHeaders: readonly string[]) => unknown {
  const tests = ['absent', 'present', 'wanted', '7', { prefix: 'wan' }, { contains: 'nte' }]
  const [[field, name] = ['', '']] = Object.entries(kind) as [string, string | undefined][]
  const conditionOf = (test: unknown): object => ({ [field]: name === undefined ? test : { [name]: test } })
  const rules = limits.parse(
    tests.flatMap((test, i) =>
      (['when', 'unless'] as const).map((part) => ({
        name: `${part}-${i}`,
        match: 'GET /*',
        requests: 1,
        window: '1m',
        [part]: conditionOf(test),
      })),
    ),
  )
  const conditions = doAtOnce(compileConditions(rules, { files: noAddressLists, wallNow: () => 0 }))
  const policies = rules.map(({ policy }) => policy)
  return (target, rawHeaders) => {
    const headers = headersOf(rawHeaders)
    return conditions?.applying(policies, {
      client,
      host: 'a',
      target,
      claims: undefined,
      headers,
      rawHeaders,
    })
  }
}

function targetOf(raw: string): Target {
  const target = readTarget('GET', raw, { headers: {} })
  if (typeof target === 'string') throw new Error(target)
  return target
}

const root = targetOf('/x')
const queryTarget = (query: string): Target => ({ ...root, forwardTarget: `/x?${query}` })

const escapes = ['%00', '%25', '%2541', '%41', '%u0041', '%', '%FF', '%C3%A9', '\xff', '\xc3', '+']
const pairUnits = [
  'sid=a%00',
  '=',
  'sid=',
  '%73id=',
  '"',
  '\\"',
  '%u0041',
  'sid=a{n}',
  'a{n}=b',
  '%2525',
  '\xffa',
  'a',
  '%C3%A9=',
]

const ofCookie = conditionsOn({ cookie: 'sid' })
const cookies: CostRow = {
  ...whole,
  name: 'cookies that conditions are about',
  units: [...pairUnits.map((unit) => `${unit}; `), ...pairUnits, 'sid="', '= ', ' ', ';', 'sid = '],
  atoms: [...escapes, 'sid=', '%73id=', '[sid', ']', '=', ' ', ',', ';', '&', '"', '\\', 'a', '{n}'],
  wrap: (content) => `sid=${content}; sid=x`,
  open: openText((header) => {
    // The conditions remember the last header that they read.
    ofCookie(root, ['cookie', 'a=b'])
    return ofCookie(root, ['cookie', header])
  }),
}

const ofQuery = conditionsOn({ query: 'sid' })
const queries: CostRow = {
  ...whole,
  // Half of `MAX_HEADER_SIZE`.
  largestBytes: 8 * 1024,
  maxMs: 2,
  name: 'a query that conditions are about',
  units: [...pairUnits.map((unit) => `${unit}&`), ...pairUnits, ';', '&', '[sid]=', '%5Bsid%5D=a&'],
  atoms: [...escapes, 'sid=', '%73id=', 'sid[', ']', '[', '?', '=', ';', '&', 'a', '{n}'],
  wrap: (content) => `sid=${content}&sid=x`,
  open: openText((query) => {
    ofQuery(queryTarget('a=b'), [])
    return ofQuery(queryTarget(query), [])
  }),
}

const headerUnits = [
  ',',
  ';',
  ' ',
  ', ',
  '"',
  "'",
  'a,',
  'a;',
  '7',
  '7,',
  '\x85',
  '\xa0',
  '\xc2\x85',
  'a b',
  ';q=1',
  '_',
  '=',
  '!',
  'a.',
  'eyJ',
]
/** Longer values are not split. */
const header = { ...whole, largestBytes: 4096, maxMs: 1.5 } as const
const headers = ['x-plan', 'authorization', 'content-type'].map((name): CostRow => {
  const read = conditionsOn({ header: name })
  return {
    ...header,
    name: `${name} that conditions are about`,
    units: [...headerUnits, 'Bearer a, ', 'a{n},', 'a{n} '],
    atoms: [...headerUnits, 'Bearer ', 'Basic ', 'wanted', '\xe2\x80\x85', '{n}', 'A', '+', '/', '~'],
    wrap: (content) => `a${content}b`,
    open: openText((value) => read(root, [name, value])),
  }
})

const ofAgent = conditionsOn({ userAgent: undefined })
const agents: CostRow = {
  ...header,
  name: 'User-Agent that conditions are about',
  units: [...headerUnits, 'wan', 'wante,'],
  atoms: [...headerUnits, 'wanted', 'Mozilla/5.0 ', '(', ')', '{n}'],
  wrap: (content) => `a${content}b`,
  open: openText((value) => ofAgent(root, ['user-agent', value])),
}

export const rows: readonly CostRow[] = [cookies, queries, ...headers, agents]
