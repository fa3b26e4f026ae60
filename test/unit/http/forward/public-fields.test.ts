import { expect, test } from 'vitest'
import { publicFields, type PublicNames } from '../../../../proxy/http/forward/public-fields.ts'

const stripped = { publicHost: 'example.com', sentHost: 'example.com', prefix: '/v1' }
const renamed = { publicHost: 'example.com', sentHost: 'app.provider.example', prefix: '' }
const both = { ...renamed, prefix: '/v1' }

function fieldOf(name: string, value: string, names: PublicNames): string | undefined {
  return publicFields(['x-a', '/', name, value], names)[3]
}

test.each([
  ['content-location', '/x', '/v1/x'],
  ['content-location', 'x', 'x'],
  ['link', '</x>; rel=preload, <y>; rel=next', '</v1/x>; rel=preload, <y>; rel=next'],
  [
    'link',
    '<https://example.com/x>; title="a <b>, \\" </c>"; rel=up',
    '<https://example.com/v1/x>; title="a <b>, \\" </c>"; rel=up',
  ],
  ['link', '<'.repeat(20_000), '<'.repeat(20_000)],
  ['refresh', '5', '5'],
  ['refresh', '5; url=/x', '5; url=/v1/x'],
  ['refresh', "0;URL='/x?a=b'", "0;URL='/v1/x?a=b'"],
  ['refresh', '0, https://example.com/x', '0, https://example.com/v1/x'],
  ['refresh', '0;url=x', '0;url=x'],
  ['x-other', '/x', '/x'],
])('%s: %s', (name, sent, expected) => {
  expect(fieldOf(name, sent, stripped)).toBe(expected)
})

test.each([
  ['/x?a#b', '/v1/x?a#b', '/x?a#b', '/v1/x?a#b'],
  ['/', '/v1/', '/', '/v1/'],
  ['/v1/x', '/v1/x', '/v1/x', '/v1/x'],
  ['/v1', '/v1', '/v1', '/v1'],
  ['/v10/x', '/v1/v10/x', '/v10/x', '/v1/v10/x'],
  ['x', 'x', 'x', 'x'],
  ['../x', '../x', '../x', '../x'],
  ['?a=/x', '?a=/x', '?a=/x', '?a=/x'],
  ['', '', '', ''],
  ['https://example.com/x', 'https://example.com/v1/x', 'https://example.com/x', 'https://example.com/v1/x'],
  [
    'http://EXAMPLE.com:80',
    'http://EXAMPLE.com:80/v1/',
    'http://EXAMPLE.com:80',
    'http://EXAMPLE.com:80/v1/',
  ],
  ['//example.com/x', '//example.com/v1/x', '//example.com/x', '//example.com/v1/x'],
  [
    'https://other.example/x',
    'https://other.example/x',
    'https://other.example/x',
    'https://other.example/x',
  ],
  ['http://app.provider.example/x?y', 'http://app.provider.example/x?y', '/x?y', '/v1/x?y'],
  ['http://app.provider.example', 'http://app.provider.example', '/', '/v1/'],
  ['http://app.provider.example?a', 'http://app.provider.example?a', '/?a', '/v1/?a'],
  [
    '//app.provider.example//evil.example',
    '//app.provider.example//evil.example',
    '/evil.example',
    '/v1/evil.example',
  ],
  [
    'http://app.provider.example/\\evil.example',
    'http://app.provider.example/\\evil.example',
    '/evil.example',
    '/v1/evil.example',
  ],
  [
    'http://app.provider.example/\t/evil.example',
    'http://app.provider.example/\t/evil.example',
    '/evil.example',
    '/v1/evil.example',
  ],
  [
    'http://example.com@evil.example/x',
    'http://example.com@evil.example/x',
    'http://example.com@evil.example/x',
    'http://example.com@evil.example/x',
  ],
  ['mailto:a@example.com', 'mailto:a@example.com', 'mailto:a@example.com', 'mailto:a@example.com'],
])('Location %j', (value, ...expected) => {
  expect([stripped, renamed, both].map((names) => fieldOf('location', value, names))).toEqual(expected)
})

test.each([
  ['a=b; Path=/', 'a=b; Path=/v1'],
  ['a=b;path=/x; Secure', 'a=b;path=/v1/x; Secure'],
  ['a=path=/x', 'a=path=/x'],
  ['a=b; Path = /v1/x', 'a=b; Path = /v1/x'],
  ['a=b', 'a=b'],
  ['a=b; Path=x', 'a=b; Path=x'],
  ['a=b; Path=/x; Path=/y', 'a=b; Path=/v1/x; Path=/v1/y'],
  ['__Host-a=b; Path=/', '__Host-a=b; Path=/'],
])('Set-Cookie %j', (value, expected) => {
  expect(fieldOf('set-cookie', value, stripped)).toBe(expected)
  expect(fieldOf('set-cookie', value, renamed)).toBe(value)
})

test('other fields are passed on as they are', () => {
  expect(publicFields(['x-link', '</x>', 'location', '/x'], stripped)).toEqual([
    'x-link',
    '</x>',
    'location',
    '/v1/x',
  ])
})
