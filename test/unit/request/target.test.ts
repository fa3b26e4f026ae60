import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readTarget, type Target } from '../../../proxy/request/target/target.ts'

// The attack: a spelling of a limited path that the gateway reads as another path and the backend does not. The gateway forwards the target
// as sent, since it may be signed or name a file, and counts it under every reading that a backend is known to use.

function accepted(raw: string, method = 'GET'): Target {
  const target = readTarget(method, raw)
  if (typeof target === 'string') throw new Error(`${raw}: ${target}`)
  return target
}

function readings(raw: string, method = 'GET'): string[] {
  const { matchPath, otherMatchPaths } = accepted(raw, method)
  return [matchPath, ...otherMatchPaths]
}

describe('the forwarded target', () => {
  const table: [raw: string, forwarded: string][] = [
    // Already canonical.
    ['/', '/'],
    ['/login', '/login'],
    ['/login/', '/login/'],
    ['/LOGIN', '/LOGIN'],
    ['/a/b.c/~d-e_f', '/a/b.c/~d-e_f'],
    ["/a!$&'()*+,=:@b", "/a!$&'()*+,=:@b"],
    ['/a"<>^`{|}[]b', '/a"<>^`{|}[]b'],
    ['/.well-known/x', '/.well-known/x'],
    ['/a/...', '/a/...'],
    ['/a/..b/c..', '/a/..b/c..'],
    // Dot segments, RFC 3986 section 5.2.4.
    ['/./login', '/login'],
    ['/a/../login', '/login'],
    ['/a/b/../../login', '/login'],
    ['/../login', '/login'],
    ['/a/..', '/'],
    ['/a/b/..', '/a/'],
    ['/a/.', '/a/'],
    ['/.', '/'],
    ['/..', '/'],
    ['/%2e%2e/login', '/login'],
    ['/a/%2E./login', '/login'],
    ['/a/.%2e/login', '/login'],
    ['/%2e/login', '/login'],
    ['/a/%2e', '/a/'],
    // Everything else stays as sent: slashes,
    ['//', '//'],
    ['//login', '//login'],
    ['///login//', '///login//'],
    ['/a//../b', '/a/b'],
    ['/a/..//b', '//b'],
    ['/x//b', '/x//b'],
    ['//evil.example/x', '//evil.example/x'],
    // escapes, needed or not, in either letter case,
    ['/%6cogin', '/%6cogin'],
    ['/%7e%2d%5f%30%41%7a', '/%7e%2d%5f%30%41%7a'],
    ['/a%2fb%2Fc', '/a%2fb%2Fc'],
    ['/a%3bb%3f%23%20%c3%a9', '/a%3bb%3f%23%20%c3%a9'],
    ['/a%252fb', '/a%252fb'],
    ['/a%2541', '/a%2541'],
    ['/a/%252e%252e/b', '/a/%252e%252e/b'],
    ['/x/../%6c%2F', '/%6c%2F'],
    // backslashes,
    ['/a\\b', '/a\\b'],
    ['/a%5cb%5Cc', '/a%5cb%5Cc'],
    ['/a/..\\login', '/a/..\\login'],
    // a URL further on,
    ['/web/2020/https://e.com/a', '/web/2020/https://e.com/a'],
    ['/300x200/http://e.com//a/../b.jpg', '/300x200/http://e.com//b.jpg'],
    ['/proxy/https%3A%2F%2Fe.com/a', '/proxy/https%3A%2F%2Fe.com/a'],
    ['/https%3A//e.com/a', '/https%3A//e.com/a'],
    ['/~a://b', '/~a://b'],
    // A query stays as sent.
    ['/login?', '/login?'],
    ['/login?a=%zz&b=%', '/login?a=%zz&b=%'],
    ['/a/../login?x=/../y//z;%6c', '/login?x=/../y//z;%6c'],
    ['/login?u=http://x/', '/login?u=http://x/'],
    ['/login?a=\\&b=%00%5c', '/login?a=\\&b=%00%5c'],
    ['/a?b?c', '/a?b?c'],
    ['/?', '/?'],
  ]
  test.each(table)('%# %s', (raw, forwarded) => {
    expect(accepted(raw).forwardTarget).toBe(forwarded)
    expect(accepted(raw).path).toBe(forwarded.split('?', 1)[0])
    expect(accepted(raw).authority).toBeUndefined()
  })

  test('the path of a target has no query', () => {
    expect(accepted('/a/../login?x').path).toBe('/login')
  })
})

describe('absolute-form (RFC 9112 section 3.2.2) is reduced to a path, and names the host', () => {
  const table: [raw: string, forwarded: string, authority: string][] = [
    ['http://host/login', '/login', 'host'],
    ['http://host', '/', 'host'],
    ['http://host/', '/', 'host'],
    ['http://host?x', '/?x', 'host'],
    ['HTTPS://Host.example:8443/a?b', '/a?b', 'Host.example:8443'],
    ['http://host:/a', '/a', 'host'],
    ['http://[::1]:80/a', '/a', '[::1]:80'],
    ['http://host//login', '//login', 'host'],
    ['http://host/a/../login', '/login', 'host'],
    ['http://app_1/a', '/a', 'app_1'],
  ]
  test.each(table)('%# %s', (raw, forwardTarget, authority) => {
    expect(accepted(raw)).toMatchObject({ forwardTarget, authority })
  })
})

describe('the target * is the server as a whole', () => {
  test('for OPTIONS, in either form (RFC 9112 section 3.2.4)', () => {
    const star = { path: '*', forwardTarget: '*', matchPath: '*', routePath: '*', otherMatchPaths: [] }
    expect(accepted('*', 'OPTIONS')).toEqual({ ...star, authority: undefined })
    expect(accepted('http://host:1', 'OPTIONS')).toEqual({ ...star, authority: 'host:1' })
    expect(accepted('http://host:1/', 'OPTIONS').forwardTarget).toBe('/')
    expect(accepted('http://host:1?', 'OPTIONS').forwardTarget).toBe('/?')
  })
})

describe('refused targets and their log messages', () => {
  const controlCharacter = 'the path has a control character'
  const blank = 'the target has a space, a control character or a non-ASCII byte'
  const noTarget = 'the target is neither a path nor an HTTP URL'
  const badAuthority = 'the target has an invalid authority'
  const table: [raw: string, reason: string][] = [
    ['', 'the target is empty'],
    ['/a b', blank],
    ['/a\0', blank],
    ['/a\tb', blank],
    ['/a\r\nHost: x', blank],
    ['/a\x7f', blank],
    ['/caf\xc3\xa9', blank],
    ['/a?\xe9', blank],
    ['/a? ', blank],
    ['/a#b', 'the target has a fragment'],
    ['/a?b#c', 'the target has a fragment'],
    ['#', 'the target has a fragment'],
    ['/a%0a%7f', controlCharacter],
    ['/a%0D%0Ab', controlCharacter],
    ['/a%250d%250aPOST%2520/', controlCharacter],
    ['/a%25%30%41', controlCharacter],
    ['/a%1F?x', controlCharacter],
    ['/a%00', controlCharacter],
    ['/a%', 'the path has an invalid percent-encoding'],
    ['/a%2', 'the path has an invalid percent-encoding'],
    ['/a%zz?x', 'the path has an invalid percent-encoding'],
    ['/a%u006c', 'the path has an invalid percent-encoding'],
    ['/%%36c', 'the path has an invalid percent-encoding'],
    ['/a%2?0', 'the path has an invalid percent-encoding'],
    ['/http://evil/x', 'the path begins with a URL'],
    ['/x/../http:%2f/../%68ttp://evil/x', 'the path begins with a URL'],
    ['/h2c+x://evil', 'the path begins with a URL'],
    ['/http://', 'the path begins with a URL'],
    ['//http://evil/x', 'the path begins with a URL'],
    ['/http:\\\\evil/x', 'the path begins with a URL'],
    ['http://host/http://evil/x', 'the path begins with a URL'],
    ['/..%2flogin', 'the path climbs above the root'],
    ['/..;/login', 'the path climbs above the root'],
    ['/a/..;/..%3b/login', 'the path climbs above the root'],
    ['/a/%252e%252e/..;/x', 'the path climbs above the root'],
    ['/..\\login', 'the path climbs above the root'],
    ['/..%5clogin', 'the path climbs above the root'],
    ['/..%252flogin', 'the path climbs above the root'],
    ['/x/..%2f..%2fapp/login', 'the path climbs above the root'],
    ['/a%2f../%2f..%2f..%2f', 'the path climbs above the root'],
    [`/${';/a%252f'.repeat(1000)}`, 'the path can be read in too many ways'],
    ['/.%2F%255C%253b%25../cgi-bin/;%2Fhttp:////%20&', 'the path can be read in too many ways'],
    ['*', 'the target * is allowed for OPTIONS only'],
    ['login', noTarget],
    ['host:443', noTarget],
    ['**', noTarget],
    ['?x', noTarget],
    ['ftp://host/', noTarget],
    ['http:/host/', noTarget],
    ['http:host', noTarget],
    ['javascript://host/', noTarget],
    ['http://', badAuthority],
    ['http:///login', badAuthority],
    ['http://?x', badAuthority],
    ['http://:80/', badAuthority],
    ['http://user@host/', badAuthority],
    ['http://user:pw@host/', badAuthority],
    ['http://host:x/', badAuthority],
    ['http://host:65536/', badAuthority],
    ['http://host:0/', badAuthority],
    ['http://host:1:2/', badAuthority],
    ['http://host\\evil/', badAuthority],
    ['http://ho%73t/', badAuthority],
    ['http://a,b/', badAuthority],
    ['http://[::1/', badAuthority],
    ['http://[::1%25eth0]/', badAuthority],
    ['http://[1.2.3.4]/', badAuthority],
    ['http://[:::]/', badAuthority],
    ['http://[]/', badAuthority],
  ]
  test.each(table)('%# %j', (raw, reason) => {
    expect(readTarget('GET', raw)).toBe(reason)
  })

  test('CONNECT, whatever its target', () => {
    for (const raw of ['host:443', '/login', 'http://host/', '*']) {
      expect(readTarget('CONNECT', raw)).toBe('CONNECT is not supported')
    }
  })

  test('a target is * or a path for OPTIONS too', () => {
    expect(readTarget('OPTIONS', '**')).toBe(noTarget)
  })
})

describe('the readings that rules match on', () => {
  test.each([
    '/login',
    '//login',
    '/./login',
    '/a/../login',
    '/%2e%2e/login',
    '/x/%2e%2e/login',
    '/%6cogin',
    '/%6C%6f%67%69%6e',
    '/LOGIN',
    '/LoGiN/',
    '/login/',
    '/login//',
    '///login',
    '/;a/;b//login',
    '/a\\..\\login',
    '\\login'.replace('\\', '/\\'),
    '/login%5c',
    '/a/x%5c..%5C../login',
    '/login/.',
    '/login;x',
    '/login;jsessionid=1/',
    '/login;',
    '/login;/',
    '/;x/login',
    '/login/;x',
    '/login?',
    '/login?x=1',
    'http://host/login',
    'http://host//LOGIN;x?y',
    // After a parameter or an escaped slash.
    '/a/..;x/login',
    '/a/..;/login',
    '/a/;/../..;/login',
    '/.;x/login',
    '/a/..%2flogin',
    '/a%2f%2e%2e%2flogin',
    '/a%2f..%2Flogin',
    '/a%2f../login/../../login',
    '/%2flogin',
    '/login%2f',
    '/login%2F%2f.',
    '/a%2fb%2f..%2f..%2flogin',
    '/login%3bx',
    '/login%3Bx=1;y',
    '/a/..%3bx/login',
    '/a%2f..;x%2flogin',
    // Around a name.
    '/login%20',
    '/%20login',
    '/login.',
    '/login..%20.',
    '/login%20;x/',
    // Letters that are folded to ASCII ones.
    '/log%C4%B1n',
    '/LOG%C4%B0N',
  ])('%# %s is the limited /login', (raw) => {
    expect(readings(raw)[0]).toBe('/login')
  })

  test.each([
    ['/login.json', ['/login.json']],
    ['/a//b', ['/a/b', '/a//b', '/a']],
    ['//b', ['/b', '//b', '/', '//']],
    ['/a&b', ['/a&b', '/a']],
    ['/a%26b', ['/a&b', '/a']],
    ['/a\\b', ['/a/b', '/a\\b']],
    ['/a%5Cb', ['/a/b', '/a\\b']],
    ['/loginx', ['/loginx']],
    ['/login/x', ['/login/x']],
    ['/log%20in', ['/log in', '/login']],
    ['/login%252f', ['/login%252f', '/login', '/login//', '/login%2f']],
    ['/%256cogin', ['/%256cogin', '/login']],
    ['/%25256cogin', ['/%25256cogin', '/%256cogin']],
    ['/100%25', ['/100%25']],
    ['/100%25zz', ['/100%25zz']],
    ['/a%252f..%252flogin', ['/a%252f..%252flogin', '/login', '/a/../login', '/a%2f..%2flogin']],
    ['/login%3Fx', ['/login?x', '/login']],
    ['/login%23', ['/login#', '/login']],
    ['/login%253Fx', ['/login%253fx', '/login?x', '/login']],
    ['/api%2flogin', ['/api/login', '/api%2flogin']],
    ['/', ['/', '//']],
    ['/users/', ['/users', '/users//']],
    ['/;x', ['/', '//', '/;x']],
    ['/%20', ['/', '/ ']],
    ['/. %2e'.replace(' ', '%20'), ['/. .', '/..', '/..//']],
    ['/..%20/login', ['/.. /login', '/../login']],
    ['/...', ['/...']],
    ['/.well-known/x', ['/.well-known/x']],
    ['/caf%C3%89', ['/caf\u00e9', '/caf']],
    ['/a@b:c', ['/a@b:c']],
    ['/a%40b%3ac', ['/a@b:c']],
    ['/a%ffb', ['/a\ufffdb', '/ab']],
    ['/a%C0%AFb', ['/a\ufffd\ufffdb', '/ab']],
    ['/__proto__', ['/__proto__']],
  ])('%# %s is read as %j', (raw, expected) => {
    expect(readings(raw)).toEqual(expected)
  })

  test.each([
    // For Express this is one segment, which a `:name` matches; for others it is two.
    ['/users/a%2Fb', '/users/a%2fb'],
    // Under a rule on /api/*, a path that leaves the subtree for one backend stays inside it for another.
    ['/api/x%2f..%2f..%2fy', '/api/x%2f..%2f..%2fy'],
    ['/api/x%2f..%2f..%2fy', '/api/x/../../y'],
    ['/api/..;/y', '/api/..;/y'],
    // nginx decodes the slash, then resolves dot segments, and knows no parameters.
    ['/a/b/..;y/..%2flogin', '/a/b/login'],
    // Tomcat drops parameters before it decodes.
    ['/a/b/..%3by/..;z/login', '/a/b/login'],
    ['/a/..;%2fx/login', '/login'],
    ['/a;%2fx/login', '/a/login'],
    ['/a;%2fx/login', '/a/x/login'],
    // RFC 3986 counts an empty segment. Most servers merge it first.
    ['/a/x/%2f..%2flogin', '/a/x/login'],
    ['/a/x/%2f..%2flogin', '/a/login'],
    // find-my-way and Puma end the path at the first `;`.
    ['/login;/x', '/login'],
    ['/login;%2fx/y', '/login'],
    ['/a%2flogin;/x', '/a/login'],
    ['/a%2flogin;/x', '/a%2flogin'],
    ['/login%20;/x', '/login'],
    // The same behind an nginx that has decoded the path.
    ['/login%3b/x', '/login'],
    ['/a/%2e%2e%2flogin%3B/x', '/login'],
    // Python's urlparse drops the parameters of the last segment only.
    ['/a;b/login;c', '/a;b/login'],
    // The path that nginx or mod_rewrite has decoded becomes the target of a new request.
    ['/login%3f/x', '/login'],
    ['/login%23/x', '/login'],
    ['/a;x/login%3f;/y', '/a/login'],
    ['/login;x%3fy', '/login'],
    // A front controller: `index.php?url=$1`.
    ['/login&x', '/login'],
    ['/login%26x=1', '/login'],
    ['/login/%2526/..', '/login'],
    ['/a%2flogin&x/y', '/a/login'],
    // Decoded twice.
    ['/a/%252e%252e/login', '/login'],
    ['/a%252fb%253bx/c', '/a/b/c'],
    ['/a/%255C/../login', '/a/login'],
    ['/%25%36%63ogin', '/login'],
    ['/caf%25C3%2589', '/caf\u00e9'],
    // nginx resolves dot segments, and a backend behind it decodes again.
    ['/z/a/b/%252e%252e/..%2f%252e%252e/login', '/z/a/login'],
    // A URL, for servers that do not merge slashes.
    ['//evil.example/login', '/login'],
    ['/\\evil.example/login', '/login'],
    ['////evil.example/login', '/login'],
    ['/http:%2f%2fevil.example/login', '/login'],
    ['/https%3A//evil.example/login', '/login'],
    ['/v1//evil.example/login', '/v1/login'],
    // A router that does not merge slashes matches a name with an empty segment.
    ['/users//edit', '/users//edit'],
    ['/users//', '/users///'],
    // Bottle drops bytes that are not UTF-8.
    ['/log%ffin', '/login'],
    ['/log%c3in', '/login'],
    ['/%e2%80login/%ff', '/login'],
    ['/gr%C3%B6%c3%9fe%c3', '/grö\u00dfe'.toUpperCase().toLowerCase()],
    // FILTER_SANITIZE_URL of PHP drops spaces and all bytes beyond ASCII, before or after another decoding.
    ['/log%20in', '/login'],
    ['/log+in', '/login'],
    ['/log%2bin', '/login'],
    ['/log%2520in', '/login'],
    ['/lo%c3%a9gin', '/login'],
    ['/log%c4%b1in', '/login'],
    ['/log%25C4%25B1in&x', '/login'],
    ['/a/%e4%b8%adlogin/x', '/a/login/x'],
    ['/index.php/log%ffin', '/login'],
    // Scripts.
    ['/wp-login.php/x', '/wp-login.php'],
    ['/wp-login.php/x/y.php', '/wp-login.php'],
    ['/wp-login.php/x%2fy', '/wp-login.php'],
    ['/WP-LOGIN.PHP//x', '/wp-login.php'],
    ['/a/login.cgi/x', '/a/login.cgi'],
    ['/cgi-bin/login/x', '/cgi-bin/login'],
    ['/index.php/wp-json/wp/v2/users', '/wp-json/wp/v2/users'],
    ['/app/index.php/login', '/app/login'],
    ['/index.php/login&x', '/login'],
    ['/login/index.php', '/login'],
    ['/index.php', '/'],
    // The data of a page: SvelteKit, Nuxt, Qwik,
    ['/search/__data.json', '/search'],
    ['/a/SEARCH/__data.json?q=x', '/a/search'],
    ['/__data.json', '/'],
    ['/search/__data%2Ejson', '/search'],
    ['/a%2fsearch/__data.json', '/a/search'],
    ['/search/_payload.json', '/search'],
    ['/search/q-data.json', '/search'],
    // the pages router of Next.js,
    ['/_next/data/Build-1/search.json', '/search'],
    ['/_next/data/build/a/search.json', '/a/search'],
    ['/_next/data/build/index.json', '/'],
    ['/_next/data/build/index/index.json', '/index'],
    ['/docs/_next/data/build/search.json', '/docs/search'],
    ['/docs/_next/data/build/index.json', '/docs'],
    // and React Router.
    ['/search.data', '/search'],
    ['/a.b/search.data', '/a.b/search'],
    ['/search/_.data', '/search'],
    ['/_root.data', '/'],
    // A view of Jakarta Faces, by each mapping of its servlet.
    ['/login.jsf', '/login.xhtml'],
    ['/login.faces', '/login.xhtml'],
    ['/LOGIN.JSF?x', '/login.xhtml'],
    ['/a.b/login.jsf', '/a.b/login.xhtml'],
    ['/login.xhtml', '/login.jsf'],
    ['/login.xhtml;jsessionid=1', '/login.jsf'],
    ['/faces/login.xhtml', '/login.xhtml'],
    ['/faces/login.xhtml', '/login.faces'],
    ['/app/faces/a/login.xhtml', '/app/a/login.xhtml'],
  ])('%# %s is also read as %s', (raw, reading) => {
    expect(readings(raw)).toContain(reading)
    expect(readings(raw, 'POST')).toContain(reading)
  })

  test.each([
    '/search/data.json',
    '/search.json',
    '/data',
    '/_next/data/build',
    '/_next/static/a.js',
    '/x__data.json',
    '/faces/login',
    '/login.html',
  ])('%s is not read as another page', (raw) => {
    expect(readings(raw)).toEqual([raw])
  })

  test.each([
    ['/login.json', '/login'],
    ['/login.zzz', '/login'],
    ['/login.1', '/login'],
    ['/login.json/', '/login'],
    ['/login.json;x', '/login'],
    ['/login..x', '/login'],
    ['/login.tar.gz', '/login'],
    ['/login.tar.gz/', '/login.tar'],
    ['/login.a.b;x', '/login'],
    ['/login%2ea.b%2Ec', '/login'],
    [`/login${'.x'.repeat(100)}`, '/login'],
    ['/login%2ejson', '/login'],
    ['/a/b.c/index.php/login.xml', '/a/b.c/login'],
    ['/users/7.json', '/users/7'],
  ])('%s is also read as %s, but not with GET and HEAD', (raw, reading) => {
    expect(readings(raw, 'POST')).toContain(reading)
    for (const method of ['GET', 'HEAD']) expect(readings(raw, method)).not.toContain(reading)
    const overridden = readTarget('GET', raw, { headers: { 'x-http-method-override': 'POST' } })
    expect(overridden).toMatchObject({ otherMatchPaths: expect.arrayContaining([reading]) as unknown })
  })

  test('a path is also read without an extension that begins at any of the first eight dots of its last segment, or at the last', () => {
    const parts = fc.array(fc.constantFrom('', 'a', 'json', '1'), { minLength: 1, maxLength: 12 })
    const check = (before: string, names: readonly string[]): void => {
      const cut = (dots: number): string => ['login', ...names.slice(0, dots)].join('.')
      const found = readings(`${before}/${cut(names.length)}`, 'POST')
      for (const [dots] of names.entries())
        if (dots < 8 || dots === names.length - 1) expect(found).toContain(`${before}/${cut(dots)}`)
      expect(found.length).toBeLessThanOrEqual(1 + 2 * 9)
    }
    fc.assert(fc.property(fc.constantFrom('', '/v1.2', '/a.b/c'), parts, check), { numRuns: 200 })
  })

  test.each([
    ['/.env', ['/.env']],
    ['/a.b/c', ['/a.b/c']],
    ['/a.b/', ['/a.b', '/a.b//', '/a']],
  ])('%s is read with POST as %j', (raw, expected) => {
    expect(readings(raw, 'POST')).toEqual(expected)
  })

  test.each([
    ['/a//../login', ['/a/login', '/login']],
    ['/../login', ['/login']],
    ['/a/%2e%2e/login', ['/login']],
    ['/a/b/;x/../../login', ['/a/login', '/login']],
  ])('%s is read as %j too where the backend gets it as it was sent', (raw, expected) => {
    const target = readTarget('GET', raw, { headers: {}, isForwardedAsSent: true })
    if (typeof target === 'string') throw new Error(target)
    expect([target.matchPath, ...target.otherMatchPaths]).toEqual(expect.arrayContaining(expected))
  })

  test.each([
    ['/V1//x%2Fy;z/', '/v1/x%2fy;z'],
    ['/', '/'],
    ['/%76%31/', '/v1'],
    ['//', '/'],
  ])('routes match %s as %s', (raw, expected) => {
    expect(accepted(raw).routePath).toBe(expected)
  })

  test.each(['/a/%E4%B8%AD%E6%96%87', '/a/%E4%B8%AD%E6%96%87/', '/a/+'])(
    'a name in another script is not dropped as a whole: %s',
    (raw) => {
      expect(readings(raw)).not.toContain('/a')
    },
  )

  test('a path is not refused because it would climb above the root without some characters', () => {
    expect(readings('/.%20./.%ff./login')).toContain('/../../login')
  })

  test('targets without another reading share one empty list', () => {
    expect(accepted('/a').otherMatchPaths).toBe(accepted('/B%2dc').otherMatchPaths)
  })
})
