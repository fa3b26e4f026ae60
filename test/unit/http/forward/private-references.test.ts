import { expect, test } from 'vitest'
import {
  MAX_TAGS,
  privateReference,
  type ReferenceNames,
} from '../../../../proxy/http/forward/private-references.ts'

const toPrivate = (path: string): string | undefined =>
  path.startsWith('/dav/') ? path.slice('/dav'.length) : undefined
const namesFor = (sentHost: string): ReferenceNames => {
  return { publicHost: 'example.com', sentHost, toPrivate, tagsLeft: MAX_TAGS }
}
const stripped = namesFor('example.com')
const both = namesFor('app.internal:8080')

test.each([
  ['/dav/b?c', '/b?c', '/b?c'],
  ['http://example.com/dav/b', 'http://example.com/b', 'http://app.internal:8080/b'],
  ['https://EXAMPLE.com:443/dav/b%20c', 'https://EXAMPLE.com:443/b%20c', 'https://app.internal:8080/b%20c'],
  ['//example.com/dav/b', '//example.com/b', '//app.internal:8080/b'],
  ['http://other.example/dav/b', 'http://other.example/dav/b', 'http://other.example/dav/b'],
  ['http://u@example.com/dav/b', 'http://u@example.com/dav/b', 'http://u@example.com/dav/b'],
  ['/other/b', undefined, undefined],
  ['http://example.com/other/b', undefined, undefined],
  ['http://example.com', undefined, undefined],
  ['b', 'b', 'b'],
  ['', '', ''],
])('Destination: %s', (sent, ofStripped, ofBoth) => {
  expect(privateReference('destination', sent, stripped)).toBe(ofStripped)
  expect(privateReference('destination', sent, both)).toBe(ofBoth)
})

test.each([
  ['(<urn:uuid:1> ["a"])', '(<urn:uuid:1> ["a"])'],
  ['</dav/a> (<urn:uuid:1>)', '</a> (<urn:uuid:1>)'],
  [
    '<http://example.com/dav/a> (["</dav/x>)"]) (Not <DAV:no-lock>) </dav/b> (<u>)',
    '<http://example.com/a> (["</dav/x>)"]) (Not <DAV:no-lock>) </b> (<u>)',
  ],
  ['</other/a> (<u>)', '</other/a> (<u>)'],
  ['</dav/a', '</dav/a'],
  ['(<u> </dav/a>', '(<u> </dav/a>'],
  ['</dav/a> (["', '</a> (["'],
  ['</dav/a>'.repeat(20), '</a>'.repeat(4) + '</dav/a>'.repeat(16)],
])('If: %s', (sent, expected) => {
  expect(privateReference('if', sent, namesFor('example.com'))).toBe(expected)
})

test('a limited number of tags is read from all lines together, and a Destination after them', () => {
  const names = namesFor('example.com')
  const lines = Array.from({ length: 10 }, () => privateReference('if', '</dav/a> (<u>)', names))
  expect(lines.filter((line) => line === '</a> (<u>)')).toHaveLength(MAX_TAGS)
  expect(privateReference('destination', '/dav/b', names)).toBe('/b')
  expect(privateReference('destination', '/other', names)).toBeUndefined()
})
