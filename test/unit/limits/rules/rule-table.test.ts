import type { IncomingHttpHeaders } from 'node:http'
import { describe, expect, test } from 'vitest'
import type { Policy, RoutePattern, Rule } from '../../../../proxy/policy.ts'
import { compileRules, type RuleTable } from '../../../../proxy/limits/rules/rule-table.ts'
import { readTarget } from '../../../../proxy/request/target/target.ts'
import { leastTimeSync, threadCpuUs } from '../../../support/load/least-time.ts'

function policyNamed(name: string): Policy {
  const partition = [{ kind: 'ip' }] as const
  return {
    name,
    quota: 1,
    windowMs: 1000,
    algorithm: 'fixed',
    mode: 'enforce',
    onStoreError: 'local',
    partition,
  }
}

/** Parses `GET,POST /a` or `* /a`, as in the limits table. */
function pattern(text: string): RoutePattern {
  const [methods = '', path = ''] = text.split(' ')
  return { methods: methods === '*' ? [] : methods.split(','), path }
}

function rule(name: string, match: string | string[], except: string[] = []): Rule {
  return { policy: policyNamed(name), match: [match].flat().map(pattern), except: except.map(pattern) }
}

/** The names of the policies that match `METHOD target`, joined into one string. */
function matched(
  table: RuleTable,
  request: string,
  headers: IncomingHttpHeaders = {},
  host = 'a.example',
): string {
  const [method = '', raw = ''] = request.split(' ')
  const target = readTarget(method, raw)
  if (typeof target === 'string') throw new Error(target)
  const policies = table.match(target, method, headers, host)
  return policies.map(({ name }) => name).join(' ')
}

function describeTable(title: string, rules: Rule[], rows: [request: string, names: string][]): void {
  describe(title, () => {
    const table = compileRules(rules)
    test.each(rows)('%# %s → %j', (request, names) => {
      expect(matched(table, request)).toBe(names)
    })
  })
}

describeTable(
  'a literal path',
  [
    rule('login', 'POST /login'),
    rule('api', 'GET /client-side-api'),
    rule('deep', '* /a/b/C.d'),
    rule('root', 'GET /'),
  ],
  [
    ['POST /login', 'login'],
    ['GET /login', ''],
    ['PUT /login', ''],
    ['post /login', 'login'],
    ['GET /client-side-api', 'api'],
    ['HEAD /client-side-api', 'api'],
    ['POST /client-side-api', ''],
    ['OPTIONS /client-side-api', ''],
    ['GET /a/b/c.d', 'deep'],
    ['PROPFIND /A/B/c.D', 'deep'],
    ['GET /a/b', ''],
    ['GET /a/b/c.d/e', ''],
    ['GET /', 'root'],
    ['HEAD //', 'root'],
    ['GET /?x', 'root'],
    ['POST /loginx', ''],
    ['POST /logi', ''],
    ['POST /login/x', ''],
    ['POST /x/login', ''],
    ['OPTIONS *', ''],
    // All spellings that once bypassed a limiter.
    ['POST //login', 'login'],
    ['POST /./login', 'login'],
    ['POST /a/../login', 'login'],
    ['POST /%2e%2e/login', 'login'],
    ['POST /%6cogin', 'login'],
    ['POST /a/b%2f..%2f..%2flogin', 'login'],
    ['POST /LOGIN', 'login'],
    ['POST /login/', 'login'],
    ['POST /login;x', 'login'],
    ['POST /login?', 'login'],
    ['POST http://host/login', 'login'],
    ['POST /a/..;x/login', 'login'],
    ['POST /a/..%2flogin', 'login'],
    ['POST /login%2f', 'login'],
    ['POST /login%20', 'login'],
    ['POST /login%252f', 'login'],
    ['POST /%256cogin', 'login'],
    ['POST /login%5Cx/..%5C', 'login'],
    ['POST /login&x', 'login'],
    ['POST /login%26x', 'login'],
    ['POST /login.zzz', 'login'],
    ['POST /login.1', 'login'],
    ['POST /index.php/login', 'login'],
    ['POST //host/login', 'login'],
  ],
)

describeTable(
  'a pattern',
  [
    rule('user', 'GET /users/:id'),
    rule('posts', 'GET /users/:id/posts'),
    rule('two', 'GET /:a/:b/end'),
    rule('tree', 'GET /files/*'),
    rule('inner', 'GET /teams/:team/files/*'),
  ],
  [
    ['GET /users/7', 'user'],
    ['GET /users/7/', 'user'],
    ['HEAD /Users/x%20y', 'user'],
    ['GET /users', ''],
    // find-my-way, the router of Fastify and Restify, accepts the empty name after the slash.
    ['GET /users/', 'user'],
    ['GET /users/;x', 'user'],
    ['GET /users/%2e', 'user'],
    ['GET /users?/', ''],
    ['GET /users/7/8', ''],
    ['GET /users/7/posts', 'posts'],
    ['GET /users/7/end', 'two'],
    ['GET /x/y/end', 'two'],
    ['GET /x/end', ''],
    ['GET /files', 'tree'],
    ['GET /files/', 'tree'],
    ['GET /files/a', 'tree'],
    ['GET /files/a/b/c/', 'tree'],
    ['GET /files/a/end', 'two tree'],
    ['GET /filesx', ''],
    ['GET /teams/1/files', 'inner'],
    ['GET /teams/1/files/a/b', 'inner'],
    ['GET /teams/1/file', ''],
    ['POST /files/a', ''],
    // One segment or two, depending on the backend.
    ['GET /users/a%2fb', 'user'],
    ['GET /users/7%2fposts', 'user posts'],
    ['GET /files%2fa', 'tree'],
    // Outside the subtree for one backend, inside it for another.
    ['GET /files/..%2fx', 'tree'],
    ['GET /files/x/..;/..;/y', 'tree'],
    ['GET /users/;x', 'user'],
    // Property names that every object has are treated like any other name.
    ['GET /users/__proto__', 'user'],
    ['GET /__proto__/constructor/end', 'two'],
    ['GET /__proto__', ''],
    ['GET /constructor', ''],
    ['GET /users/:id', 'user'],
    ['GET /users/*', 'user'],
  ],
)

describeTable(
  'names that every object has',
  [rule('proto', 'GET /__proto__'), rule('in', 'GET /constructor/:x'), rule('own', '* /hasOwnProperty/*')],
  [
    ['GET /__proto__', 'proto'],
    ['GET /constructor', ''],
    ['GET /constructor/toString', 'in'],
    ['GET /toString', ''],
    ['__proto__ /hasownproperty', 'own'],
    ['constructor /__proto__', ''],
  ],
)

describeTable(
  'a pattern, however it is spelled,',
  [
    rule('upper', 'GET /Users/:ID/Me'),
    rule('slash', 'GET /end/'),
    rule('escaped', 'GET /caf%C3%A9/%7Ex'),
    rule('raw', 'GET /caf\u00e9s'),
    rule('at', 'GET /v1/a%40b'),
    rule('colon', 'GET /v1/a:b'),
    rule('literal-colon', 'GET /v2/%3Aid'),
    rule('literal-star', 'GET /v3/%2A'),
    rule('escaped-slash', 'GET /v4/a%2Fb'),
    rule('inner-star', 'GET /v5/*/x'),
  ],
  [
    ['GET /users/7/me', 'upper'],
    ['GET /end', 'slash'],
    ['GET /end/', 'slash'],
    ['GET /caf%c3%a9/~x', 'escaped'],
    ['GET /CAF%C3%89/%7ex', 'escaped'],
    ['GET /caf%C3%A9s', 'raw'],
    ['GET /v1/a@b', 'at'],
    ['GET /v1/a%40B', 'at'],
    ['GET /v1/a%3ab', 'colon'],
    ['GET /v2/:id', 'literal-colon'],
    ['GET /v2/%3aid', 'literal-colon'],
    ['GET /v2/7', ''],
    ['GET /v3/*', 'literal-star'],
    ['GET /v3/x', ''],
    ['GET /v4/a%2fb', 'escaped-slash'],
    ['GET /v4/a/b', 'escaped-slash'],
    ['GET /v5/*/x', 'inner-star'],
    ['GET /v5/y', ''],
    ['GET /v5/y/x', ''],
  ],
)

describeTable(
  'everything',
  [rule('all', '* /*'), rule('one', 'GET /:page')],
  [
    ['GET /', 'all one'],
    ['GET /x', 'all one'],
    ['DELETE /x/y', 'all'],
    ['OPTIONS *', 'all'],
    ['OPTIONS http://host', 'all'],
  ],
)

describeTable(
  'several rules on one path match in the order of the table',
  [
    rule('late', 'POST /a/*'),
    rule('exact', ['POST /a/b', 'GET /a/b']),
    rule('name', '* /a/:x'),
    rule('twice', ['POST /a/b', '* /:y/b', 'POST,PUT /a/*']),
  ],
  [
    ['POST /a/b', 'late exact name twice'],
    ['GET /a/b', 'exact name twice'],
    ['PUT /a/c', 'name twice'],
    ['POST /a', 'late twice'],
    ['POST /a/b/c', 'late twice'],
    ['GET /z/b', 'twice'],
    ['POST /A%2fB', 'late exact name twice'],
    ['POST /z', ''],
  ],
)

describeTable(
  'an exception',
  [
    rule('management', 'GET,POST /mgmt/*', ['GET /mgmt/health', '* /mgmt/public/*']),
    rule('users', '* /users/:id', ['GET /users/me']),
    rule('exact', '* /one', ['OPTIONS /one']),
    rule('other', 'GET /mgmt/health'),
    rule('nothing', 'GET /never', ['* /never']),
  ],
  [
    ['GET /mgmt/x', 'management'],
    ['GET /mgmt/health', 'other'],
    ['HEAD /mgmt/health', 'other'],
    ['POST /mgmt/health', 'management'],
    ['GET /mgmt/HEALTH/', 'other'],
    ['GET /mgmt/public', ''],
    ['POST /mgmt/public/a/b', ''],
    ['GET /mgmt/publicx', 'management'],
    ['GET /users/me', ''],
    ['PUT /users/me', 'users'],
    ['GET /users/7', 'users'],
    ['OPTIONS /one', ''],
    ['PATCH /one', 'exact'],
    ['GET /never', ''],
    // A path that only some backends treat as the exception is limited.
    ['GET /mgmt/health;x', 'management other'],
    ['GET /mgmt/health%20', 'management other'],
    ['GET /mgmt/..%2fmgmt%2fhealth', 'management other'],
    ['GET /mgmt/x/..;/public/a', 'management'],
  ],
)

describe('a field that overrides the method', () => {
  const table = compileRules([
    rule('get', 'GET /a'),
    rule('post', 'POST /a'),
    rule('delete', 'DELETE /a'),
    rule('pattern', 'PATCH /:x'),
    rule('wide', 'PATCH /*'),
    rule('excepted', '* /a', ['DELETE /a']),
  ])

  test.each<[request: string, headers: IncomingHttpHeaders, names: string]>([
    ['PUT /a', {}, 'excepted'],
    ['PUT /a', { 'x-http-method-override': 'POST' }, 'post excepted'],
    ['PUT /a', { 'x-http-method': 'POST' }, 'post excepted'],
    ['PUT /a', { 'x-method-override': 'post' }, 'post excepted'],
    ['POST /a', { 'x-http-method-override': 'GET' }, 'get post excepted'],
    ['POST /a', { 'x-http-method-override': 'HEAD' }, 'get post excepted'],
    ['DELETE /a', { 'x-http-method-override': 'POST' }, 'post delete excepted'],
    ['DELETE /a', { 'x-http-method-override': 'DELETE' }, 'delete'],
    ['DELETE /a', { 'x-http-method': 'POST', 'x-method-override': 'GET' }, 'get post delete excepted'],
    ['POST /a', { 'x-http-method-override': 'PATCH' }, 'post pattern wide excepted'],
    ['GET /z', { 'x-http-method-override': 'PATCH' }, 'pattern wide'],
    ['GET /z', { 'x-http-method-override': 'PUT' }, ''],
    ['PUT /a', { 'x-http-method-override': 'NONSENSE' }, 'excepted'],
    ['PUT /a', { 'x-http-method-override': '' }, 'excepted'],
    ['DELETE /a', { 'x-http-method-override': '' }, 'delete'],
    // Backends disagree about the method of these requests.
    ['PUT /a', { 'x-http-method-override': 'GET, POST' }, 'get post delete pattern wide excepted'],
    ['PUT /a', { 'x-http-method-override': 'x'.repeat(8000) }, 'get post delete pattern wide excepted'],
    ['PUT /a', { 'x-http-method-override': '"POST"' }, 'get post delete pattern wide excepted'],
    ['GET /z', { 'x-http-method-override': 'a b' }, 'pattern wide'],
    ['GET /nothing/here', { 'x-http-method-override': 'a b' }, 'wide'],
    ['PUT /a;x', { 'x-http-method-override': 'POST' }, 'post excepted'],
  ])('%# %s %j → %s', (request, headers, names) => {
    expect(matched(table, request, headers)).toBe(names)
  })
})

describe('a rule for some hosts', () => {
  const table = compileRules([
    { ...rule('app', 'GET /:page'), hosts: ['app.example'] },
    rule('every', 'GET /:page'),
    { ...rule('below', 'GET /a'), hosts: ['*.example', 'other.example.net'] },
    { ...rule('address', 'GET /a'), hosts: ['192.0.2.1', '2001:db8::1'] },
  ])
  test.each([
    ['app.example', 'app every below'],
    ['APP.Example.', 'app every below'],
    ['app.example:443', 'app every below'],
    ['a.b.app.example:443', 'every below'],
    ['example', 'every'],
    ['app.example.org', 'every'],
    ['xapp.example', 'every below'],
    ['appxexample', 'every'],
    ['other.example.net', 'every below'],
    ['x.other.example.net', 'every'],
    ['192.0.2.1', 'every address'],
    ['192.0.2.1:80', 'every address'],
    ['[2001:DB8:0::1]:80', 'every address'],
    ['[2001:db8::2]', 'every'],
  ])('%s: %s', (host, names) => {
    expect(matched(table, 'GET /a', {}, host)).toBe(names)
    expect(matched(table, 'GET //A/;x', {}, host)).toBe(names)
    expect(matched(table, 'POST /a', {}, host)).toBe('')
  })

  test('overrides of the method are matched for the host as well', () => {
    expect(matched(table, 'POST /a', { 'x-http-method-override': 'GET' }, 'app.example')).toBe(
      'app every below',
    )
  })

  test('a rule for some hosts is found as fast among ten thousand hosts', () => {
    const hosts = Array.from({ length: 10_000 }, (_, i) => `h${i}.example`)
    const many = compileRules(hosts.map((host) => ({ ...rule(host, 'GET /a'), hosts: [host] })))
    const find = (): void => {
      for (let i = 0; i < 10_000; i++) expect(matched(many, 'GET /a', {}, hosts[i])).toBe(hosts[i])
    }
    expect(leastTimeSync(5_000_000, () => threadCpuUs(find))).toBeLessThan(5_000_000)
  })
})

describe('lookups in a compiled rule table', () => {
  const target = { matchPath: '/a', otherMatchPaths: [] }

  test('a table without rules matches nothing', () => {
    expect(compileRules([]).match(target, 'GET', {}, 'a')).toEqual([])
  })

  test('a lookup of a literal path, or one where nothing matches, allocates nothing', () => {
    const table = compileRules([rule('a', 'GET /a'), rule('p', 'GET /p/:x')])
    expect(table.match(target, 'GET', {}, 'a')).toBe(table.match(target, 'GET', {}, 'a'))
    const nowhere = { matchPath: '/b', otherMatchPaths: [] }
    expect(table.match(nowhere, 'GET', {}, 'a')).toBe(table.match(target, 'POST', {}, 'a'))
  })

  test('a lookup returns the policies themselves', () => {
    const login = rule('login', 'POST /login')
    expect(
      compileRules([login]).match({ matchPath: '/login', otherMatchPaths: [] }, 'POST', {}, 'a')[0],
    ).toBe(login.policy)
  })

  test('a lookup of a path of many segments is as fast where names and literals branch at each of them', () => {
    const branches = Array.from({ length: 1024 }, (_, bits) => {
      const segments = Array.from({ length: 10 }, (_, i) => ((bits >> i) & 1 ? ':x' : 'a'))
      return rule(`r${bits}`, `GET /${segments.join('/')}/end`)
    })
    const table = compileRules(branches)
    const long = { matchPath: '/a'.repeat(5000), otherMatchPaths: [] }
    const answer = (): void => {
      for (let i = 0; i < 20; i++) table.match(long, 'GET', {}, 'a')
    }
    expect(leastTimeSync(1_000_000, () => threadCpuUs(answer))).toBeLessThan(1_000_000)
    expect(
      table.match({ matchPath: `${'/a'.repeat(10)}/end`, otherMatchPaths: [] }, 'GET', {}, 'a'),
    ).toHaveLength(1024)
  })

  test('a lookup is as fast with ten thousand rules as with six', () => {
    const [few, many] = [6, 10_000].map(matching)
    const ratio = (): number => threadCpuUs(() => many?.()) / threadCpuUs(() => few?.())
    // The two take the same time within a few per cent; visiting every rule would take a thousand times as long.
    expect(leastTimeSync(20, ratio)).toBeLessThan(20)
  })
})

/** Many matches in a table with this number of rules, some literal and some not. */
function matching(count: number): () => void {
  const forms = ['/login', '/users/:id', '/api/*', '/:a/posts']
  const rules = Array.from({ length: count }, (_, i) => {
    const form = forms[i % forms.length] ?? ''
    return rule(`r${i}`, i < 6 ? `POST ${form}` : `POST /v${i}${form}`)
  })
  const table = compileRules(rules)
  const paths = ['/login', '/users/7', '/api/x/y', '/other', '/a/b/c/d', '/v9/users/7']
  const targets = paths.map((matchPath) => ({ matchPath, otherMatchPaths: [] }))
  return () => {
    for (let i = 0; i < 20_000; i++) for (const target of targets) table.match(target, 'POST', {}, 'a')
  }
}

// The attack: a path of 60 bytes with a hundred readings. For each reading, the rules of all matching patterns were sorted again.
test('the rules of the same patterns are looked at once, however many readings a path has', () => {
  const patterns = ['* /*', 'POST /api/*', 'GET /api/:id', 'PUT /api/:id/*', 'GET /api/:id/']
  const table = compileRules(patterns.map((match, i) => rule(String(i), match)))
  const target = readTarget('POST', '/api/%5C.php%255C%20%23\\%20%252F%3f%20//cgi-bin/%20.x%5C%20ind')
  if (typeof target === 'string') throw new Error(target)
  expect(target.otherMatchPaths.length).toBeGreaterThan(80)
  let looks = 0
  const headers = {
    get 'x-http-method-override'() {
      looks += 1
      return 'no method'
    },
  }
  expect(table.match(target, 'POST', headers, 'a.example').map(({ name }) => name)).toEqual(
    patterns.map((_, i) => String(i)),
  )
  expect(looks).toBeLessThan(3 * patterns.length)
})
