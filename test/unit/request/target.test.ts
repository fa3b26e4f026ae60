import { describe, expect, test } from 'vitest'
import { canonicalizeTarget, type Target } from '../../../proxy/request/target.ts'

// The attack: a limited path spelled so that the gateway takes it for another one and the backend does not. Matching and
// forwarding one canonical spelling takes away what is the gateway's to decide; reading that spelling in every way in
// which backends are known to read it takes away the rest.

function accepted(raw: string, method = 'GET'): Target {
  const target = canonicalizeTarget(method, raw)
  if (typeof target === 'string') throw new Error(`${raw}: ${target}`)
  return target
}

function readings(raw: string): string[] {
  const { matchPath, otherMatchPaths } = accepted(raw)
  return [matchPath, ...otherMatchPaths]
}

describe('what is forwarded', () => {
  const table: [raw: string, forwarded: string][] = [
    // As it came.
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
    // Slashes, after dot segments.
    ['//', '/'],
    ['//login', '/login'],
    ['///login//', '/login/'],
    ['/a//../b', '/a/b'],
    ['/a/..//b', '/b'],
    ['//evil.example/x', '/evil.example/x'],
    // Escapes.
    ['/%6cogin', '/login'],
    ['/%6Cogin', '/login'],
    ['/%7e%2d%5f%30%41%7a', '/~-_0Az'],
    ['/a%2fb', '/a%2Fb'],
    ['/a%3bb%3f%23%20%c3%a9', '/a%3Bb%3F%23%20%C3%A9'],
    ['/a%252fb', '/a%252fb'],
    ['/a%2541', '/a%2541'],
    // A URL further on is data; its slashes are merged as any are, and kept where they are escaped.
    ['/web/2020/https://e.com/a', '/web/2020/https:/e.com/a'],
    ['/300x200/http://e.com//a/../b.jpg', '/300x200/http:/e.com/b.jpg'],
    ['/proxy/https%3A%2F%2Fe.com/a', '/proxy/https%3A%2F%2Fe.com/a'],
    ['/~a://b', '/~a:/b'],
    ['/a%0a%7f', '/a%0A%7F'],
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
    ['http://host//login', '/login', 'host'],
    ['http://host/a/../login', '/login', 'host'],
    ['http://app_1/a', '/a', 'app_1'],
  ]
  test.each(table)('%# %s', (raw, forwardTarget, authority) => {
    expect(accepted(raw)).toMatchObject({ forwardTarget, authority })
  })
})

describe('the target * is the server as a whole', () => {
  test('for OPTIONS, in either form (RFC 9112 section 3.2.4)', () => {
    const star = { path: '*', forwardTarget: '*', matchPath: '*', otherMatchPaths: [] }
    expect(accepted('*', 'OPTIONS')).toEqual({ ...star, authority: undefined })
    expect(accepted('http://host:1', 'OPTIONS')).toEqual({ ...star, authority: 'host:1' })
    expect(accepted('http://host:1/', 'OPTIONS').forwardTarget).toBe('/')
    expect(accepted('http://host:1?', 'OPTIONS').forwardTarget).toBe('/?')
  })
})

describe('what is refused, and what the log says of it', () => {
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
    ['/a\\b', 'the path has a backslash'],
    ['/a%5cb', 'the path has a backslash'],
    ['/a%5Cb', 'the path has a backslash'],
    ['/a/..\\login', 'the path has a backslash'],
    ['/a%00', 'the path has a NUL'],
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
    ['http://host/http://evil/x', 'the path begins with a URL'],
    ['/..%2flogin', 'the path climbs above the root'],
    ['/..;/login', 'the path climbs above the root'],
    ['/a/..;/..%3b/login', 'the path climbs above the root'],
    ['/x/..%2f..%2fapp/login', 'the path climbs above the root'],
    ['/a%2f../%2f..%2f..%2f', 'the path climbs above the root'],
    [`/${';/'.repeat(300)}`, 'the path has too many segments'],
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
    expect(canonicalizeTarget('GET', raw)).toBe(reason)
  })

  test('CONNECT, whatever its target', () => {
    for (const raw of ['host:443', '/login', 'http://host/', '*']) {
      expect(canonicalizeTarget('CONNECT', raw)).toBe('CONNECT is not supported')
    }
  })

  test('a target is * or a path for OPTIONS too', () => {
    expect(canonicalizeTarget('OPTIONS', '**')).toBe(noTarget)
  })
})

describe('what rules match on', () => {
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
    // Behind a parameter or an escaped slash.
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
    '/login%0a',
    '/login%0D%0A',
    '/login%09%7f',
    '/login.',
    '/login..%20.',
    '/login/%0a',
    '/login%20;x/',
    // Letters that are folded to ASCII ones.
    '/log%C4%B1n',
    '/LOG%C4%B0N',
  ])('%# %s is the limited /login', (raw) => {
    expect(readings(raw)[0]).toBe('/login')
  })

  test.each([
    ['/login.json', ['/login.json']],
    ['/loginx', ['/loginx']],
    ['/login/x', ['/login/x']],
    ['/log%20in', ['/log in']],
    ['/login%252f', ['/login%252f']],
    ['/a%252f..%252flogin', ['/a%252f..%252flogin']],
    ['/login%3Fx', ['/login?x', '/login']],
    ['/login%23', ['/login#', '/login']],
    ['/login%253Fx', ['/login%253fx']],
    ['/api%2flogin', ['/api/login', '/api%2flogin']],
    ['/', ['/', '//']],
    ['/users/', ['/users', '/users//']],
    ['/;x', ['/', '//', '/;x']],
    ['/%20', ['/', '/ ']],
    ['/%0a/', ['/', '/\n', '/\n//']],
    ['/. %2e'.replace(' ', '%20'), ['/. .']],
    ['/..%20/login', ['/.. /login']],
    ['/...', ['/...']],
    ['/.well-known/x', ['/.well-known/x']],
    ['/caf%C3%89', ['/caf\u00e9']],
    ['/a@b:c', ['/a@b:c']],
    ['/a%40b%3ac', ['/a@b:c']],
    ['/a%ffb', ['/a\ufffdb']],
    ['/a%C0%AFb', ['/a\ufffd\ufffdb']],
    ['/__proto__', ['/__proto__']],
  ])('%# %s is read as %j', (raw, expected) => {
    expect(readings(raw)).toEqual(expected)
  })

  test.each([
    // Express has one segment where others have two, and a `:name` there takes it.
    ['/users/a%2Fb', '/users/a%2fb'],
    // What climbs out for one backend stays inside for another, under a rule on /api/*.
    ['/api/x%2f..%2f..%2fy', '/api/x%2f..%2f..%2fy'],
    ['/api/x%2f..%2f..%2fy', '/api/x/../../y'],
    ['/api/..;/y', '/api/..;/y'],
    // nginx decodes the slash and resolves, and knows no parameters.
    ['/a/b/..;y/..%2flogin', '/a/b/login'],
    // Tomcat drops parameters before it decodes.
    ['/a/b/..%3by/..;z/login', '/a/b/login'],
    ['/a/..;%2fx/login', '/login'],
    ['/a;%2fx/login', '/a/login'],
    ['/a;%2fx/login', '/a/x/login'],
    // RFC 3986 counts an empty segment, most servers merge it first.
    ['/a/x/%2f..%2flogin', '/a/x/login'],
    ['/a/x/%2f..%2flogin', '/a/login'],
    // find-my-way and Puma end the path at the first `;`.
    ['/login;/x', '/login'],
    ['/login;%2fx/y', '/login'],
    ['/a%2flogin;/x', '/a/login'],
    ['/a%2flogin;/x', '/a%2flogin'],
    ['/login%20;/x', '/login'],
    // The same behind nginx that has decoded it.
    ['/login%3b/x', '/login'],
    ['/a/%2e%2e%2flogin%3B/x', '/login'],
    // Python's urlparse drops the parameters of the last segment only.
    ['/a;b/login;c', '/a;b/login'],
    // What nginx or mod_rewrite has decoded is the target of a new request.
    ['/login%3f/x', '/login'],
    ['/login%23/x', '/login'],
    ['/a;x/login%3f;/y', '/a/login'],
    ['/login;x%3fy', '/login'],
    // Resolved by nginx, then matched up to the line end by Python.
    ['/a/b/..;y/..%2flogin%0a', '/a/b/login'],
  ])('%# %s is also read as %s', (raw, reading) => {
    expect(readings(raw)).toContain(reading)
  })

  test('one shared empty list says that there is no other reading', () => {
    expect(accepted('/a').otherMatchPaths).toBe(accepted('/B%20c').otherMatchPaths)
  })
})
