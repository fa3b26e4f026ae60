import { expect, test } from 'vitest'
import { canonicalizeTarget } from '../../../proxy/request/target.ts'
import { createPrefixStripper, literalPrefix } from '../../../proxy/rules/strip-prefix.ts'

const strip = createPrefixStripper(['/v1/*', '/v1/old/*', '/caf%C3%A9/*', '/t/:tenant/x', '/exact'])

function stripped(raw: string): string | undefined {
  const target = canonicalizeTarget('GET', raw)
  return typeof target === 'string' ? undefined : strip(target)?.target
}

test.each([
  ['/v1/x', '/x'],
  ['/v1', '/'],
  ['/v1/', '/'],
  ['/v1?a=/v1/b', '/?a=/v1/b'],
  ['/v1/x/?', '/x/?'],
  ['/V1/X', '/X'],
  ['//v1///x', '/x'],
  ['/%76%31/x', '/x'],
  ['/a/../v1/./x', '/x'],
  ['/v1/v1/x', '/v1/x'],
  ['/v1/old/x', '/x'],
  ['/v1/x%2Fy;z', '/x%2Fy;z'],
  ['/caf%c3%a9/x', '/x'],
  ['/t/a/x', '/a/x'],
  ['/exact', '/'],
])('%s arrives as %s', (raw, expected) => {
  expect(stripped(raw)).toBe(expected)
})

/**
 * Each of these takes the route, as the path that rules read first is one of /v1/…. The backend would read the rest in another
 * way than the rules have read the whole.
 */
test.each([
  ['the slash after the prefix is escaped', '/v1%2Fx'],
  ['a slash before it', '/%2Fv1/x'],
  ['the prefix has parameters', '/v1;a=b/x'],
  ['or escaped ones', '/v1%3Ba/x'],
  ['a blank', '/v1%20/x'],
  ['something else climbs out first', '/a/..;/v1/x'],
  ['or with an escaped slash', '/a%2F..%2Fv1/x'],
  ['the rest climbs above its root and back in', '/v1/..;/v1/x'],
  ['or with escaped slashes', '/v1/a%2F..%2F..%2Fv1/x'],
  ['another case of letters that are not ASCII', '/CAF%C3%89/x'],
  ['the rest begins with a scheme', '/v1/http:/evil.example/x'],
])('%s: refused', (_, raw) => {
  const target = canonicalizeTarget('GET', raw)
  expect(target).toMatchObject({ matchPath: expect.stringMatching(/^\/(v1|café)\//) as unknown })
  expect(stripped(raw)).toBe(undefined)
})

test.each([
  ['/v1/*', '/v1'],
  ['/v1/a', '/v1/a'],
  ['/v1/', '/v1'],
  ['/a/:id/b/*', '/a'],
  ['/a:b/*', '/a:b'],
  ['/:id', ''],
  ['/*', ''],
  ['/', ''],
])('the prefix of %s is "%s"', (pattern, prefix) => {
  expect(literalPrefix(pattern)).toBe(prefix)
})
