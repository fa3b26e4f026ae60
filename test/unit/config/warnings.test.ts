import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { loadGatewaySettings } from '../../../proxy/config/settings.ts'
import { writeMmdb } from '../../support/geo/mmdb.ts'
import { directoryWith, loadWithFile } from '../../support/gateway/settings.ts'

// Settings that work, but hardly as intended: a warning names the place, the effect, and what to write instead.

function warningsOf(yaml: string, env: Record<string, string> = {}): string[] {
  return loadWithFile(yaml, env).warnings
}

function ofRule(fields: string): string[] {
  return warningsOf(`limits:\n  - name: a\n${fields.replaceAll(/^ *(?=\S)/gm, '    ')}`)
}

describe('variables of OpenTelemetry that have no effect', () => {
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' }

  test.each<[string, Record<string, string>, string[]]>([
    [
      'a protocol that is not supported',
      { ...endpoint, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
      ['OTEL_EXPORTER_OTLP_PROTOCOL: got "grpc", spans are exported by http/json'],
    ],
    ['the protocol in use', { ...endpoint, OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json' }, []],
    [
      'variables that nothing reads',
      { ...endpoint, OTEL_PROPAGATORS: 'b3', OTEL_BSP_SCHEDULE_DELAY: '1' },
      ['OTEL_BSP_SCHEDULE_DELAY, OTEL_PROPAGATORS: not read by the gateway'],
    ],
    [
      'variables that are read, empty, or say what holds anyway',
      {
        ...endpoint,
        OTEL_SERVICE_NAME: 'a',
        OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'a=b',
        OTEL_EXPORTER_OTLP_CLIENT_KEY: '/key.pem',
        OTEL_TRACES_SAMPLER: 'always_on',
        OTEL_PROPAGATORS: '',
        OTEL_METRICS_EXPORTER: 'none',
      },
      [],
    ],
    ['without an endpoint', { OTEL_PROPAGATORS: 'b3', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, []],
    [
      'an exporter without an endpoint',
      { OTEL_TRACES_EXPORTER: 'otlp' },
      ['OTEL_TRACES_EXPORTER: no spans are exported without OTEL_EXPORTER_OTLP_ENDPOINT'],
    ],
  ])('%s', (_, env, warnings) => {
    expect(warningsOf('limits: []', env)).toEqual(warnings)
  })
})

describe('rules that cost more than they seem to', () => {
  test('a long list of times', () => {
    const rule = (requests: number): string => `
      match: GET /a
      algorithm: sliding
      requests: ${requests}
      window: 1h`
    expect(ofRule(rule(10_000))).toEqual([])
    expect(ofRule(rule(100_000))).toEqual([
      'sluice.yaml:6: rule "a", requests: a sliding window keeps the time of each request, up to 1000 kB for one client; with algorithm: fixed or token-bucket it is less than 200 bytes',
    ])
    expect(ofRule(rule(100_000).replace('sliding', 'fixed'))).toEqual([])
  })

  test('a site without compression', () => {
    const rule = (path: string, settle: string): string => `
      match: POST ${path}
      requests: 100
      window: 1h
      cost: { reserve: 5, settle: '${settle}' }`
    expect(ofRule(rule('/*', 'json:n'))).toEqual([
      'sluice.yaml:7: rule "a", cost: the gateway requests uncompressed responses to read their bodies, here from the whole site; limit match to the paths whose responses state their cost',
    ])
    expect(ofRule(rule('/chat/*', 'json:n'))).toEqual([])
    expect(ofRule(rule('/*', 'header:n'))).toEqual([])
  })

  test('requests without a body that reserve everything', () => {
    const rule = (methods: string, reserve: string): string => `
      match: '${methods} /chat'
      requests: 100
      window: 1h
      cost: { reserve: ${reserve}, settle: 'header:n' }`
    const warning =
      'sluice.yaml:7: rule "a", cost: a request without a body, such as GET, reserves all 100; limit match to methods that have one, or set reserve: { json: PATH, else: NUMBER }'
    expect(ofRule(rule('*', "'json:n'"))).toEqual([warning])
    expect(ofRule(rule('GET,POST', '{ json: n }'))).toEqual([warning])
    expect(ofRule(rule('*', '{ json: n, else: 5 }'))).toEqual([])
    expect(ofRule(rule('POST', "'json:n'"))).toEqual([])
    expect(ofRule(rule('*', '5'))).toEqual([])
  })
})

describe('settings without effect', () => {
  const limits = 'limits: [{ name: a, match: GET /a, requests: 1, window: 1m }]'

  test.each([
    [
      'accessLog: true\nlogLevel: warn',
      ['sluice.yaml:1: accessLog: has no effect at logLevel warn, as its lines have the level info'],
    ],
    [
      'accessLog: refused\nlogLevel: error',
      ['sluice.yaml:1: accessLog: has no effect at logLevel error, as its lines have the level info'],
    ],
    ['accessLog: refused\nlogLevel: debug', []],
    ['namespace: shop', ['sluice.yaml:1: namespace: has no effect without Redis (REDIS_URL)']],
    ['namespace: shop\nredisUrl: redis://a', []],
    [
      'ipv6Prefix: 128',
      [
        'sluice.yaml:1: ipv6Prefix: 128 lets a client with a /64 network, as most have, count as many different clients; 64 makes it one',
      ],
    ],
    ['ipv6Prefix: 56', []],
    [
      'timezone: Europe/Berlin',
      ['sluice.yaml:1: timezone: has no effect, as no rule has window: hour, day, week, month'],
    ],
    ['timezone: UTC', []],
  ])('%s', (settings, warnings) => expect(warningsOf(`${settings}\n${limits}`)).toEqual(warnings))

  test('a plan that allows less than no plan', () => {
    const rule =
      '{ name: a, match: GET /, requests: 100, window: 1h, plans: { trial: 10, pro: 1000 }, plan: jwt:plan }'
    const cwd = directoryWith(`jwt: { secretFile: secret }\nlimits:\n  - ${rule}`)
    writeFileSync(join(cwd, 'secret'), 'x'.repeat(64))
    expect(loadGatewaySettings({}, cwd).warnings).toEqual([
      'sluice.yaml:3: rule "a", plans: plan trial allows 10, less than 100 (requests) without a plan',
    ])
  })

  test('a key set that no rule needs', () => {
    const cwd = directoryWith(`jwt: { secretFile: secret }\n${limits}`)
    writeFileSync(join(cwd, 'secret'), 'x'.repeat(64))
    expect(loadGatewaySettings({}, cwd).warnings).toEqual([
      'sluice.yaml:1: jwt: has no effect, as no rule has jwt:CLAIM in its key or plan, or jwt in when or unless',
    ])
  })

  test('a secret of devices that no rule knows', () => {
    const env = { DEVICE_SECRET: 'x'.repeat(40) }
    const device = 'key: query:user, device: { status: 303 }'
    const withDevice = limits.replace('window: 1m', `window: 1m, ${device}`)
    expect(loadGatewaySettings(env, directoryWith(limits)).warnings).toEqual([
      'DEVICE_SECRET: has no effect, as no rule has device',
    ])
    expect(loadGatewaySettings(env, directoryWith(withDevice)).warnings).toEqual([
      expect.stringMatching(/a client can avoid the limit by/),
    ])
  })

  test.each([
    ['POST /*', '/*'],
    ['POST /wiki/*', '/wiki/*'],
    ['POST /', '/'],
    ['[POST /login, POST /w/index.php]', '/w/index.php'],
    ['POST /login', undefined],
    ['POST /:team/login', undefined],
    ['POST /index.php/login', undefined],
  ])('devices under %s', (match, path) => {
    const env = { DEVICE_SECRET: 'x'.repeat(40) }
    const rule = `{ name: a, match: ${match}, requests: 5, window: 1m, key: body:user, device: { status: 302 } }`
    const address = `{ name: b, match: ${match}, requests: 9, window: 1m }`
    const expected = `sluice.yaml:2: rule "a", device: any request to ${path} that succeeds and names an account can make its client a known device of that account; limit match to the paths of sign-ins`
    const warningsWith = (status: string): string[] =>
      warningsOf(`limits:\n  - ${rule.replace('302', status)}\n  - ${address}\n`, env)
    for (const status of ['302', '2xx', '[299, 303]'])
      expect(warningsWith(status)).toEqual(path ? [expected] : [])
    expect(warningsWith('299')).toEqual([])
  })

  test('databases that no rule asks', () => {
    const cwd = directoryWith(`geoip: { country: c.mmdb, asn: a.mmdb }\n${limits}`)
    writeFileSync(join(cwd, 'c.mmdb'), writeMmdb({ '0.0.0.0/1': { country: { iso_code: 'DE' } } }))
    writeFileSync(join(cwd, 'a.mmdb'), writeMmdb({ '0.0.0.0/1': { asn: 'AS64496' } }))
    expect(loadGatewaySettings({}, cwd).warnings).toEqual([
      'sluice.yaml:1: geoip.country: has no effect, as no rule has country in its key, when or unless',
      'sluice.yaml:1: geoip.asn: has no effect, as no rule has asn in its key, when or unless',
    ])
  })

  test('units that a rule takes ahead, without Redis', () => {
    const cwd = directoryWith(limits.replace('window: 1m', 'window: 1m, lease: auto'))
    expect(loadGatewaySettings({ REDIS_URL: 'redis://127.0.0.1:6379' }, cwd).warnings).toEqual([])
    expect(loadGatewaySettings({}, cwd).warnings).toEqual([
      'sluice.yaml:1: rule "a", lease: has no effect without Redis (REDIS_URL), as this process keeps the counters',
    ])
  })

  test('a list of a rule that everybody is on', () => {
    expect(
      warningsOf(
        'limits:\n  - { name: a, match: GET /a, requests: 1, window: 1m, allowList: [{ ip: 0.0.0.0/0 }] }',
      ),
    ).toEqual([
      'sluice.yaml:2: rule "a", allowList: every client is on the list, so the rule applies to nobody',
    ])
  })
})

describe('networks of NAT64, whose clients are matched by their IPv4 addresses', () => {
  const nat64Warning = (range: string): string =>
    `${range} does not match clients behind NAT64, which are matched by their IPv4 addresses: list these`
  const limit = '{ name: a, match: GET /a, requests: 1, window: 1m }'

  test.each([
    '64:ff9b::/96',
    '64:ff9b::/32',
    '64::/16',
    '64:ff9b::/97',
    '64:ff9b::/103',
    '64:ff9b::10.0.0.0/103',
  ])('%s is warned of in each list', (range) => {
    const list = `[{ ip: '${range}' }]`
    expect(warningsOf(`denyList: ${list}\nlimits: [${limit}]`)).toEqual([
      `sluice.yaml:1: denyList: ${nat64Warning(range)}`,
    ])
    expect(warningsOf(`denyList: ${list}`)).toContain(`sluice.yaml:1: denyList: ${nat64Warning(range)}`)
    expect(warningsOf(`allowList: ${list}\nlimits: [${limit}]`)).toEqual([
      `sluice.yaml:1: allowList: ${nat64Warning(range)}`,
    ])
    const withList = limit.replace('1m', `1m, allowList: ${list}`)
    expect(warningsOf(`limits: [${withList}]`)).toEqual([
      `sluice.yaml:1: rule "a", allowList: ${nat64Warning(range)}`,
    ])
    for (const field of ['when', 'unless']) {
      const condition = limit.replace('1m', `1m, ${field}: [{ ip: '${range}' }]`)
      expect(warningsOf(`limits: [${condition}]`)).toEqual([
        `sluice.yaml:1: rule "a", ${field}: ${nat64Warning(range)}`,
      ])
    }
    const override = limit.replace('1m', `1m, overrides: [{ clients: [{ ip: '${range}' }], requests: 9 }]`)
    expect(warningsOf(`limits: [${override}]`)).toEqual([
      `sluice.yaml:1: rule "a", overrides: ${nat64Warning(range)}`,
    ])
  })

  test.each([
    ['an address of it', '64:ff9b::192.0.2.1'],
    ['a network with the prefix of an IPv4 network', '64:ff9b::198.51.0.0/111'],
    ['half of it, which is read as IPv4', '64:ff9b::128.0.0.0/97'],
    ['a private network, whose addresses stay in it', '64:ff9b::10.0.0.0/104'],
    ['the prefix of another translator', '64:ff9b:1::/48'],
    ['another network', '2001:db8::/32'],
    ['a network that has IPv4 as well', '::/8'],
  ])('there is no warning of %s: %s', (_, range) => {
    expect(warningsOf(`denyList: [{ ip: '${range}' }]\nlimits: [${limit}]`)).toEqual([])
  })
})

test('a warning names keys of a key set that no token is tried with', () => {
  const warningsOfKeys = (keys: number): string[] => {
    const keySet = JSON.stringify({ keys: Array.from({ length: keys }, () => ({ kty: 'EC', crv: 'P-521' })) })
    const rule = '{ name: a, match: GET /a, requests: 1, window: 1m, key: { first: [jwt:sub, ip] } }'
    const cwd = directoryWith(`limits: [${rule}]\njwt:\n  jwksFile: jwks.json\n`)
    writeFileSync(join(cwd, 'jwks.json'), keySet)
    return loadGatewaySettings({}, cwd).warnings
  }
  expect(warningsOfKeys(1)).toEqual([])
  expect(warningsOfKeys(2)).toEqual([
    'sluice.yaml:3: jwt.jwksFile: 1 of its keys (P-521) without a kid is not used for a token without a kid, as the limit for that kind is 1: give each key a kid',
  ])
})

describe('a path in the notation of a framework or a regular expression', () => {
  test.each([
    ['/login,/signup', 'is one path with a comma; several paths need a list'],
    ['/login$', 'ends with the character $, as a path is not a regular expression; leave it out'],
    ['/users/$id', 'has the literal segment $id, not a parameter; :id is for any one segment'],
    ['/posts/$postSlug/a', 'has the literal segment $postSlug, not a parameter; :id is for any one segment'],
    [
      '/api/.+',
      'has the characters .+, as a path is not a regular expression; * as the last segment is for all below it',
    ],
  ])('%s', (path, note) => {
    const rule = `match: ['POST /a', 'POST ${path}']\n requests: 1\n window: 1m`
    expect(ofRule(rule)).toEqual([`sluice.yaml:3: rule "a", match: "${path}" ${note}`])
    expect(ofRule(`match: POST /*\n except: 'GET ${path}'\n requests: 1\n window: 1m`)).toEqual([
      `sluice.yaml:4: rule "a", except: "${path}" ${note}`,
    ])
    const route = `routes:\n  - { name: page, upstream: 'http://x', paths: ['${path}'] }\n`
    for (const limits of ['limits: []', `limits:\n  - { name: a, match: GET /, requests: 1, window: 1m }`])
      expect(warningsOf(`${route}${limits}`)).toEqual([
        `sluice.yaml:2: route "page", paths: "${path}" ${note}`,
      ])
  })

  test.each([
    '/odata/$batch',
    '/Patient/$everything',
    '/Group/:id/$export',
    '/a,b',
    '/a$b/c',
    '/c++',
    '/users/:id',
    '/x/%5Bid%5D',
  ])('%s is not warned of', (path) =>
    expect(ofRule(`match: 'POST ${path}'\n requests: 1\n window: 1m`)).toEqual([]),
  )
})

test('a delay within which hardly any turn comes', () => {
  const rule = (delay: string, cost = 1): string =>
    ofRule(`
      match: GET /a
      algorithm: token-bucket
      requests: 10
      window: 1m
      over: { delay: ${delay} }
      cost: ${cost}`).join()
  expect(rule('5s')).toBe(
    'sluice.yaml:8: rule "a", over: turns are 6 s apart, so most requests are refused; a longer delay lets them wait',
  )
  expect(rule('6s')).toBe('')
  expect(rule('11s', 2)).toBe(
    'sluice.yaml:8: rule "a", over: turns are 12 s apart, so most requests are refused; a longer delay lets them wait',
  )
  expect(rule('12s', 2)).toBe('')
})

test('a warning names a route that no request takes', () => {
  const routes = "routes:\n  - { name: page, upstream: 'http://x', onlyOver: true }\n"
  const rule = '  - { name: a, match: GET /a, requests: 1, window: 1m, over: { route: page } }'
  expect(warningsOf(`${routes}limits: []`)).toEqual([
    'sluice.yaml:2: route "page", onlyOver: no request takes the route, as no rule has over: { route: page }',
  ])
  expect(warningsOf(`${routes}limits:\n${rule}`)).toEqual([])
})

describe('a route after others', () => {
  const idle = (line: number, name: string): string =>
    `sluice.yaml:${line}: route "${name}": no request takes the route, as routes before it take all that it matches: put it before them`
  const warningsOfRoutes = (...routes: readonly string[]): readonly string[] =>
    warningsOf(
      `limits: []\nroutes:\n${routes.map((fields, index) => `  - { name: r${index}, upstream: 'http://x', ${fields} }`).join('\n')}`,
    )

  test.each([
    ['every path', ['balance: round-robin'], 'paths: /v1/*'],
    ['every path of its host', ['hosts: a.test'], "hosts: a.test, paths: ['/v1/*', /x]"],
    ['the names below its domain', ["hosts: '*.b.test'"], "hosts: [a.b.test, '*.c.b.test']"],
    ['the same path in another case', ['paths: /V1/*'], 'paths: [/v1, /v1/x, /v1/:id/y]'],
    ['any segment', ['paths: /users/:id'], 'paths: /users/me'],
    ['any first segment', ['paths: /:tenant/x'], 'paths: [/a/x, /:other/x]'],
    ['a part each', ['hosts: a.test', 'paths: /v1/*'], "hosts: [a.test, b.test], paths: ['/v1/x']"],
    ['the root', ['paths: /'], 'hosts: a.test, paths: /'],
  ])('is named if they take %s', (_what, before, last) => {
    const all = [...before, last]
    expect(warningsOfRoutes(...all)).toEqual([idle(all.length + 2, `r${all.length - 1}`)])
  })

  test.each([
    [['paths: /v1/*'], 'balance: round-robin'],
    [['hosts: a.test'], 'paths: /v1/*'],
    [["hosts: '*.b.test'"], 'hosts: b.test'],
    [['paths: /users/:id'], 'paths: /users/*'],
    [['paths: /users/me'], 'paths: /users/:id'],
    [['onlyOver: true'], 'paths: /v1/*'],
    [['hosts: a.test, paths: /x'], 'hosts: [a.test, b.test], paths: /x'],
  ])('is not named if it takes some requests, as after %s', (before, last) => {
    const rule = 'limits: [{ name: a, match: GET /a, requests: 1, window: 1m, over: { route: r0 } }]'
    const routes = [...before, last].map(
      (fields, at) => `  - { name: r${at}, upstream: 'http://x', ${fields} }`,
    )
    expect(warningsOf(`${rule}\nroutes:\n${routes.join('\n')}`)).toEqual([])
  })

  test('a route is not warned of if a rule sends requests to it', () => {
    const rule = 'limits: [{ name: a, match: GET /a, requests: 1, window: 1m, over: { route: r1 } }]'
    const routes =
      "routes:\n  - { name: r0, upstream: 'http://x' }\n  - { name: r1, upstream: 'http://y', paths: /x }"
    expect(warningsOf(`${rule}\n${routes}`)).toEqual([])
  })
})

describe('a rule that never refuses anybody', () => {
  const rule = (name: string, requests: number, more = ''): string =>
    `  - { name: ${name}, match: POST /a, requests: ${requests}, window: 1m${more} }\n`
  const about = (line: number, name: string, other: string): string =>
    `sluice.yaml:${line}: rule "${name}", name: never refuses anybody, as rule "${other}" counts the same and allows no more: keep one`

  test('beside one that allows less', () => {
    expect(warningsOf(`limits:\n${rule('a', 5)}${rule('b', 9)}${rule('c', 5)}`)).toEqual([
      about(3, 'b', 'a'),
      about(4, 'c', 'a'),
    ])
    expect(warningsOf(`limits:\n${rule('a', 9)}${rule('b', 5)}`)).toEqual([about(2, 'a', 'b')])
  })

  test.each([
    ', mode: shadow',
    ', key: global',
    ', hosts: a.example',
    ', except: POST /a/b',
    ', algorithm: sliding',
    ', countStatus: 401',
    ', cost: 2',
    ', refusal: { status: 403 }',
    ', allowList: [{ ip: 10.0.0.1 }]',
    ', overrides: [{ clients: [{ ip: 10.0.0.1 }], requests: 2 }]',
  ])('a rule that differs in something else is not warned of: %s', (more) =>
    expect(warningsOf(`limits:\n${rule('a', 5)}${rule('b', 9, more)}`)).toEqual([]),
  )
})

test('rules that count by a body, which auth requests do not carry', () => {
  const table = `
trustedProxies: [127.0.0.1]
limits:
  - name: account
    match: POST /login
    key: { first: [body:email, header:x-user] }
    requests: 5
    window: 15m
  - { name: login, match: POST /login, requests: 30, window: 15m }`
  expect(warningsOf(table)).toEqual([])
  expect(warningsOf(table, { DECISIONS_PORT: '9091' })).toEqual([
    'sluice.yaml:6: rule "account", key: counts by the body, which auth requests (DECISIONS_PORT) do not carry: they count by address',
  ])
})
