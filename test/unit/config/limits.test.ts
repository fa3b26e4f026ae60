import { describe, expect, test } from 'vitest'
import { loadWithFile } from '../../support/gateway/settings.ts'

const login = 'name: login, requests: 30, window: 15m'

function rulesOf(yaml: string) {
  return loadWithFile(yaml).settings.rules
}

function ruleOf(fields: string) {
  const [rule, ...others] = rulesOf(`limits: [{${fields}}]`)
  expect(others).toEqual([])
  return rule
}

test('the built-in table', () => {
  const minute = 60_000
  const table = rulesOf('port: 8080').map(({ policy, match, except }) => {
    expect({ ...policy, except }).toMatchObject({
      mode: 'enforce',
      onStoreError: 'local',
      partition: [{ kind: 'ip' }],
      except: [],
    })
    return [policy.name, match, policy.quota, policy.windowMs / minute]
  })
  expect(table).toEqual([
    ['login', [{ methods: ['POST'], path: '/login' }], 30, 15],
    ['signup', [{ methods: ['POST'], path: '/signup' }], 30, 60],
    ['verify-email', [{ methods: ['POST'], path: '/verify-email' }], 10, 60],
    ['forgot-password', [{ methods: ['POST'], path: '/forgot-password' }], 5, 60],
    ['client-side-api', [{ methods: ['GET'], path: '/client-side-api' }], 100, 1],
    ['share', [{ methods: ['POST'], path: '/share' }], 100, 60],
  ])
})

test('a sliding window', () =>
  expect(ruleOf(`${login}, match: POST /login, algorithm: sliding`)?.policy).toMatchObject({
    quota: 30,
    windowMs: 900_000,
    algorithm: 'sliding',
  }))

test('an empty list means no limits', () => expect(rulesOf('limits: []')).toEqual([]))

test('a rule with only the required fields gets the defaults', () => {
  expect(ruleOf(`${login}, match: POST /login`)).toStrictEqual({
    policy: {
      name: 'login',
      quota: 30,
      windowMs: 900_000,
      algorithm: 'fixed',
      mode: 'enforce',
      onStoreError: 'local',
      partition: [{ kind: 'ip' }],
    },
    match: [{ methods: ['POST'], path: '/login' }],
    except: [],
  })
})

test('a rule with all that it can have', () => {
  const [rule] = rulesOf(`
limits:
  - name: v1.management_api-2
    match: ["GET,POST /api/v1/management/*", "* /x/:y/z"]
    except: ["GET /api/v1/management/health"]
    key: [ip, header:X-Api-Key]
    requests: 1000000000
    window: 365d
    algorithm: fixed
    mode: shadow
    onStoreError: closed
`)
  expect(rule).toStrictEqual({
    policy: {
      name: 'v1.management_api-2',
      quota: 1_000_000_000,
      windowMs: 365 * 24 * 3_600_000,
      algorithm: 'fixed',
      mode: 'shadow',
      onStoreError: 'closed',
      partition: [{ kind: 'ip' }, { kind: 'header', name: 'x-api-key' }],
    },
    match: [
      { methods: ['GET', 'POST'], path: '/api/v1/management/*' },
      { methods: [], path: '/x/:y/z' },
    ],
    except: [{ methods: ['GET'], path: '/api/v1/management/health' }],
  })
})

test.each([
  ['1s', 1_000],
  ['90s', 90_000],
  ['15m', 900_000],
  ['1h', 3_600_000],
  ['30d', 30 * 24 * 3_600_000],
])('window: %s', (window, windowMs) => {
  expect(ruleOf(`name: x, match: GET /, requests: 1, window: ${window}`)?.policy.windowMs).toBe(windowMs)
})

test.each<[key: string, partition: object[]]>([
  ['ip', [{ kind: 'ip' }]],
  ['ip/24/48', [{ kind: 'network', ipv4: 24, ipv6: 48 }]],
  [
    '[ip/8/16, header:a]',
    [
      { kind: 'network', ipv4: 8, ipv6: 16 },
      { kind: 'header', name: 'a' },
    ],
  ],
  [
    '{ first: [header:a, ip/32/128] }',
    [
      {
        kind: 'first',
        of: [
          { kind: 'header', name: 'a' },
          { kind: 'network', ipv4: 32, ipv6: 128 },
        ],
      },
    ],
  ],
  ['host', [{ kind: 'host' }]],
  ['global', [{ kind: 'global' }]],
  ['[host, ip]', [{ kind: 'host' }, { kind: 'ip' }]],
  ['cookie:__Host-Sid', [{ kind: 'cookie', name: '__Host-Sid' }]],
  ['query:api.Key', [{ kind: 'query', name: 'api.Key' }]],
  ['query:id as integer', [{ kind: 'query', name: 'id', isNumber: true }]],
  ['header:X-Project as integer', [{ kind: 'header', name: 'x-project', isNumber: true }]],
])('key: %s', (key, partition) => {
  expect(ruleOf(`${login}, match: POST /login, key: ${key}`)?.policy.partition).toEqual(partition)
})

test.each<[written: string, hosts: string[]]>([
  ['app.example', ['app.example']],
  ['App.EXAMPLE.', ['app.example']],
  ['"*.example.com"', ['*.example.com']],
  [
    '[a.example, "*.a.example", xn--bcher-kva.example, my_host]',
    ['a.example', '*.a.example', 'xn--bcher-kva.example', 'my_host'],
  ],
  ['["192.0.2.1", "[2001:DB8::1]", "::1", "::ffff:1.2.3.4"]', ['192.0.2.1', '2001:db8::1', '::1', '1.2.3.4']],
])('hosts: %s', (written, hosts) => {
  expect(ruleOf(`${login}, match: POST /login, hosts: ${written}`)?.hosts).toEqual(hosts)
})

test('key: { first: [...] } is accepted alone and in a list', () => {
  const header = { kind: 'header', name: 'x-key' }
  const path = { kind: 'path', name: 'id', patterns: ['/users/:id'] }
  const partitionOf = (key: string): unknown =>
    ruleOf(`${login}, match: GET /users/:id, key: ${key}`)?.policy.partition
  expect(partitionOf('{ first: [header:X-Key, ip] }')).toEqual([
    { kind: 'first', of: [header, { kind: 'ip' }] },
  ])
  expect(partitionOf('{ first: [header:X-Key, cookie:sid, global] }')).toEqual([
    { kind: 'first', of: [header, { kind: 'cookie', name: 'sid' }, { kind: 'global' }] },
  ])
  expect(partitionOf('[ip, { first: [header:x-key, "path:id"] }]')).toEqual([
    { kind: 'ip' },
    { kind: 'first', of: [header, path] },
  ])
})

test('key: path:NAME knows the paths of the rule', () => {
  const match = '["GET /users/:id", "POST /teams/:team/users/:id", "PUT /a/:id/*"]'
  expect(ruleOf(`${login}, match: ${match}, key: ["path:id", ip]`)?.policy.partition).toEqual([
    { kind: 'path', name: 'id', patterns: ['/users/:id', '/teams/:team/users/:id', '/a/:id/*'] },
    { kind: 'ip' },
  ])
})

test('an override keeps its accounts and clients where a rule of the table has a calendar window', () => {
  const table = (window: string): string => `limits:
    - { name: api, match: GET /api, requests: 1000, window: ${window} }
    - name: login
      match: POST /login
      key: body:email
      requests: 10
      window: 1h
      overrides: [{ clients: [{ body:email: a@example.com }, { ip: 192.0.2.7 }], requests: 100 }]`
  const overridesWith = (window: string) => rulesOf(table(window))[1]?.overrides
  expect(overridesWith('1h')).toEqual([
    expect.objectContaining({ accounts: [expect.any(String)], clients: [expect.any(Object)] }),
  ])
  expect(overridesWith('day')).toEqual(overridesWith('1h'))
})

test.each(['enforce', 'shadow'])('mode: %s', (mode) => {
  expect(ruleOf(`${login}, match: POST /login, mode: ${mode}`)?.policy.mode).toBe(mode)
})

test.each(['local', 'open', 'closed'])('onStoreError: %s', (onStoreError) => {
  expect(ruleOf(`${login}, match: POST /login, onStoreError: ${onStoreError}`)?.policy.onStoreError).toBe(
    onStoreError,
  )
})

test.each([
  '/',
  '/*',
  '/login/',
  '/Login',
  '/:name',
  '/a/:b-c/*',
  '/a:b',
  "/a.b_c~d-e!f$g&h'i(j)k+l,m=n:o@p",
  '/caf%C3%A9',
  '/a%2Fb',
  '/100%25',
  '/%2A',
  '/...',
  '/.well-known/x',
])('a path that can match: %s', (path) => {
  expect(ruleOf(`${login}, match: ${JSON.stringify(`GET ${path}`)}`)?.match).toEqual([
    { methods: ['GET'], path },
  ])
})

test('every method that clients can send', () => {
  const methods = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'PURGE', 'M-SEARCH']
  expect(ruleOf(`${login}, match: "${methods.join(',')} /x"`)?.match).toEqual([{ methods, path: '/x' }])
})

test('a wide and a narrow rule may match the same', () => {
  const rules = rulesOf(`
limits:
  - {name: wide, match: POST /login, requests: 30, window: 15m}
  - {name: narrow, match: POST /login, requests: 5, window: 10s}
`)
  expect(rules.map(({ policy }) => policy.name)).toEqual(['wide', 'narrow'])
})

test.each([
  ['GET /a/b', '[GET /a/c, POST /a/b]'],
  ['GET,POST /a/b', 'GET /a/*'],
  ['"* /a"', 'GET /a'],
  ['GET /a/*', '["GET /a/:x", GET /a]'],
  ['GET /a/:x', 'GET /a/b'],
  ['GET /:x', 'GET /a/b'],
  ['HEAD,GET /a', 'HEAD /a'],
  ['GET /', '"GET /:x"'],
])('an exception that leaves something to match: %s but %s', (match, except) => {
  expect(
    ruleOf(`${login}, match: [${match.replace(/^([^"].*,.*)$/, '"$1"')}], except: ${except}`)?.except,
  ).not.toEqual([])
})

test('anchors and aliases', () => {
  const rules = rulesOf(`
limits:
  - {name: a, match: &api [GET /x, GET /y], requests: 1, window: 1m}
  - {name: b, match: *api, requests: 1, window: 1h}
`)
  expect(rules[1]?.match).toEqual(rules[0]?.match)
})

test('one anchor in a thousand rules is accepted', () => {
  const rules = Array.from(
    { length: 1_000 },
    (_, i) => `  - {name: r${i}, match: *m, requests: 1, window: 1m}\n`,
  )
  const first = '  - {name: first, match: &m [GET /x], requests: 1, window: 1m}\n'
  expect(rulesOf(`limits:\n${first}${rules.join('')}`)).toHaveLength(1_001)
})

describe('a rule with conditions', () => {
  const gap = '; a second rule with the same match and key: ip closes this gap'
  const warningsOf = (...rules: string[]): readonly string[] =>
    loadWithFile(
      `jwt: { jwksUrl: https://issuer.example/keys }\nlimits:\n  - { name: t, match: GET /t, key: { first: [jwt:sub, ip] }, requests: 1, window: 1m }\n${rules.map((rule, i) => `  - { name: r${i}, match: GET /a, requests: 1, window: 1m, ${rule} }\n`).join('')}`,
    ).warnings

  test.each([
    ['when: { header: { x-key: absent } }', 'when', 'sending another header, or none (when)'],
    ['unless: { cookie: { sid: present } }', 'unless', 'sending another cookie, or none (unless)'],
    ['when: { query: { a: b } }', 'when', 'sending another query parameter, or none (when)'],
    ['when: { userAgent: { contains: bot } }', 'when', 'sending another header, or none (when)'],
    ['when: { jwt: { plan: free } }', 'when', 'leaving out the token (when)'],
  ])('a rule with a condition that a client can choose is warned of: %s', (fields, field, way) => {
    const warning = `sluice.yaml:4: rule "r0", ${field}: a client can avoid the limit by ${way}${gap}`
    expect(warningsOf(fields)).toEqual([warning])
    // A rule with the same conditions does not close the gap.
    expect(warningsOf(fields, fields)).toContain(warning)
    expect(warningsOf(fields, 'mode: enforce')).toEqual([])
  })

  test.each([
    'when: { ip: 192.0.2.0/24 }',
    'unless: { ip: 192.0.2.0/24 }',
    'when: { jwt: { plan: absent } }',
    'unless: { jwt: { plan: pro } }',
    // A request without the parameter does something else, such as no search.
    'when: { query: { a: present } }',
  ])('a rule with a condition that no client can choose is not warned of: %s', (fields) => {
    expect(warningsOf(fields)).toEqual([])
  })

  test('by address does not close the gap of a rule by key, unless that has the same conditions', () => {
    const byKey = 'key: header:x-key'
    const condition = 'unless: { ip: 192.0.2.0/24 }'
    const warning = `sluice.yaml:4: rule "r0", key: a client can avoid the limit by leaving out or changing the header${gap}`
    expect(warningsOf(byKey, condition)).toEqual([warning])
    expect(warningsOf(`${byKey}, ${condition}`, condition)).toEqual([])
  })
})

describe('a rule that counts by header', () => {
  const warning =
    'a client can avoid the limit by leaving out or changing the header; ' +
    'a second rule with the same match and key: ip closes this gap'
  const byKey = `
limits:
  - name: by-key
    match: ["GET,HEAD /a/:id", "POST /b"]
    except: GET /a/health
    key: header:x-api-key
    requests: 1
    window: 1m
`

  // Without the header the rule does not apply, and with another value its count starts again, even from the same address.
  test('a rule that counts by header is warned of, even if it counts by address and header together', () => {
    const { warnings } = loadWithFile(`${byKey}
  - {name: both, match: GET /, key: [header:x-api-key, ip], requests: 1, window: 1m}
`)
    expect(warnings).toEqual([
      `sluice.yaml:6: rule "by-key", key: ${warning}`,
      `sluice.yaml:10: rule "both", key: ${warning}`,
    ])
  })

  test.each([
    ['the same match', 'match: ["GET,HEAD /a/:id", "POST /b"]'],
    ['a wider match', 'match: "* /*"'],
    ['the same match, for all clients', 'match: ["GET,HEAD /a/:id", "POST /b"], key: global'],
    ['its exceptions', 'match: ["GET /A/*", "POST,PUT /b/"], except: GET /a/health'],
    ['the same match, and counts only 401 responses', 'match: "* /*", countStatus: [401, 403]'],
    ['the same match, and counts all failures', 'match: "* /*", countStatus: [4xx]'],
  ])('a rule that counts by header is not warned of where a rule by address has %s', (_, fields) => {
    const { warnings } = loadWithFile(`${byKey}
  - {name: by-address, ${fields}, requests: 1, window: 1m}
`)
    expect(warnings).toEqual([])
  })

  test('a rule that counts by header is warned of where that rule sends requests to a route, unless it does so too', () => {
    const routed = 'over: { route: slow }'
    const routes = "routes:\n  - { name: slow, upstream: 'http://x', onlyOver: true }\n"
    const rule = `  - {name: by-address, match: "* /*", ${routed}, requests: 1, window: 1m}\n`
    expect(loadWithFile(`${byKey}${rule}${routes}`).warnings).toEqual([
      `sluice.yaml:6: rule "by-key", key: ${warning}`,
    ])
    expect(loadWithFile(`${byKey}    ${routed}\n${rule}${routes}`).warnings).toEqual([])
  })

  test.each(['countStatus: [403]', 'countStatus: [5xx]'])(
    'a rule that counts by header is warned of where that rule has %s',
    (fields) => {
      const { warnings } = loadWithFile(`${byKey}
  - {name: by-address, match: "* /*", ${fields}, requests: 1, window: 1m}
`)
      expect(warnings).toEqual([`sluice.yaml:6: rule "by-key", key: ${warning}`])
    },
  )

  test('a rule that counts by header is not warned of where a rule by address is for the same hosts, or where the key is one of few hosts', () => {
    const { warnings } = loadWithFile(`
limits:
  - {name: a, match: GET /a, hosts: [a.example, b.example], key: header:x, requests: 1, window: 1m}
  - {name: b, match: GET /a, hosts: [b.example, c.example, a.example], requests: 1, window: 1m}
  - {name: c, match: GET /c, hosts: [a.example, b.example], key: host, requests: 1, window: 1m}
`)
    expect(warnings).toEqual([])
  })

  test.each([
    ['cookie:sid', 'cookie'],
    ['query:user', 'query parameter'],
    ['["path:id", "query:user", header:x]', 'query parameter'],
  ])('a rule that counts by header is warned of with %s', (key, what) => {
    const { warnings } = loadWithFile(`
limits:
  - {name: a, match: GET /a/:id, key: ${key}, requests: 1, window: 1m}
`)
    expect(warnings).toEqual([
      `sluice.yaml:3: rule "a", key: ${warning.replace('the header', `the ${what}`)}`,
    ])
  })

  test.each([
    ['{ first: [header:x, ip] }', 'changing the header'],
    ['{ first: [header:x, query:user] }', 'changing the header'],
    ['[ip, { first: [query:a, query:b] }]', 'changing the query parameter'],
    ['body:email', 'changing the value in the body'],
  ])('a rule that counts by header is warned of with %s', (key, way) => {
    const { warnings } = loadWithFile(`
limits:
  - {name: a, match: 'GET,POST /a/:id', key: ${key}, requests: 1, window: 1m}
`)
    expect(warnings).toEqual([
      `sluice.yaml:3: rule "a", key: ${warning.replace('leaving out or changing the header', way)}`,
    ])
  })

  test.each([
    ['jwt:sub', true],
    ['{ first: [jwt:sub, jwt:client] }', true],
    ['{ first: [jwt:sub, ip] }', false],
  ])('a rule that counts by header is warned of with %s: %s', (key, isWarned) => {
    const { warnings } = loadWithFile(`
jwt: { jwksUrl: https://issuer.example/keys }
limits:
  - {name: a, match: GET /a, key: ${key}, requests: 1, window: 1m}
`)
    const text = warning.replace('leaving out or changing the header', 'leaving out the token')
    expect(warnings).toEqual(isWarned ? [`sluice.yaml:4: rule "a", key: ${text}`] : [])
  })

  test('a rule that counts by header is not warned of with a part of the path, which names a resource and not a client', () => {
    const { warnings } = loadWithFile(`
limits:
  - {name: a, match: GET /a/:id, key: ["path:id", ip], requests: 1, window: 1m}
`)
    expect(warnings).toEqual([])
  })

  test('causes a warning if hosts is a wildcard', () => {
    const { warnings } = loadWithFile(`
limits:
  - {name: c, match: GET /c, hosts: '*.a.example', key: host, requests: 1, window: 1m}
`)
    expect(warnings).toEqual([`sluice.yaml:3: rule "c", key: ${warning}`])
  })

  test('a rule that counts by header is not warned of where several rules by address count all of it', () => {
    const { warnings } = loadWithFile(`${byKey}
  - {name: a, match: "GET /a/*", requests: 1, window: 1m}
  - {name: b, match: "* /b", requests: 1, window: 1m}
`)
    expect(warnings).toEqual([])
  })

  test.each([
    ['not all of its paths', 'match: GET /a/:id'],
    ['not all of its methods', 'match: ["HEAD /a/:id", "POST /b"]'],
    ['more exceptions', 'match: "* /*", except: POST /b'],
    ['the same match, but in shadow', 'match: "* /*", mode: shadow'],
    ['the same match, but for some hosts', 'match: "* /*", hosts: a.example'],
    ['the same match, but by a part of the path', 'match: ["GET,HEAD /:a/*", "POST /:a"], key: "path:a"'],
    ['the same match, but by a header first', 'match: "* /*", key: {first: [header:x, ip]}'],
    ['the same match, but by host', 'match: "* /*", key: [ip, host]'],
    ['the same match, but with a header', 'match: "* /*", key: [ip, header:x-other]'],
  ])('a rule that counts by header is warned of where a rule by address has %s', (_, fields) => {
    const { warnings } = loadWithFile(`${byKey}
  - {name: other, ${fields}, requests: 1, window: 1m}
`)
    expect(warnings[0]).toBe(`sluice.yaml:6: rule "by-key", key: ${warning}`)
  })
})
