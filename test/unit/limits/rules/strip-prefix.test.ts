import { expect, test } from 'vitest'
import { readTarget } from '../../../../proxy/request/target/target.ts'
import { createPrefixStripper, literalPrefix } from '../../../../proxy/limits/rules/strip-prefix.ts'

const strip = createPrefixStripper(['/v1/*', '/v1/old/*', '/caf%C3%A9/*', '/t/:tenant/x', '/exact'])

function stripped(raw: string): string | undefined {
  const target = readTarget('GET', raw)
  return typeof target === 'string' ? undefined : strip(target)?.target
}

test.each([
  ['/v1/x', '/x'],
  ['/v1', '/'],
  ['/v1/', '/'],
  ['/v1?a=/v1/b', '/?a=/v1/b'],
  ['/v1/x/?', '/x/?'],
  ['/V1/X', '/X'],
  ['/v1///x', '///x'],
  ['//v1/x//y', '/x//y'],
  ['/v1/%6c%2f%5C\\', '/%6c%2f%5C\\'],
  ['/%76%31/x', '/x'],
  ['/a/../v1/./x', '/x'],
  ['/v1/v1/x', '/v1/x'],
  ['/v1/old/x', '/x'],
  ['/v1/x%2Fy;z', '/x%2Fy;z'],
  ['/caf%c3%a9/x', '/x'],
  ['/CAF%C3%89/x', '/x'],
  ['/t/a/x', '/a/x'],
  ['/exact', '/'],
])('%s arrives as %s', (raw, expected) => {
  expect(stripped(raw)).toBe(expected)
})

/** The backend would read the rest of these paths differently from how the rules have read the whole path. */
test.each([
  ['the rest climbs above its root and back in', '/v1/..;/v1/x'],
  ['or with escaped slashes', '/v1/a%2F..%2F..%2Fv1/x'],
  ['or with backslashes', '/v1/a%5C..%5c..\\v1/x'],
  ['the rest begins with a scheme', '/v1/http://evil.example/x'],
  ['or with a host, after a prefix that seems to', '//v1//evil.example/x'],
])('%s: refused', (_, raw) => {
  const target = readTarget('GET', raw)
  expect(target).toMatchObject({ routePath: expect.stringMatching(/^\/v1\//) as unknown })
  expect(stripped(raw)).toBe(undefined)
})

/** If only rules can read a path as the route's, it is a different path. */
test.each([
  '/v1%2Fx',
  '/%2Fv1/x',
  '/v1;a=b/x',
  '/v1%3Ba/x',
  '/v1%20/x',
  '/a/..;/v1/x',
  '/a%2F..%2Fv1/x',
  '/v1%5Cx',
])('%s does not take the route', (raw) => {
  expect(readTarget('GET', raw)).not.toMatchObject({ routePath: expect.stringMatching(/^\/v1\//) as unknown })
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
