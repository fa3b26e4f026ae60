import { expect, test } from 'vitest'
import { prefersHtml } from '../../../../proxy/http/fields/accept.ts'

const chromium = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8'

test.each<[string | undefined, boolean]>([
  [undefined, false],
  ['', false],
  // Scripts and command-line clients.
  ['*/*', false],
  ['application/json', false],
  ['application/json, text/plain, */*', false],
  ['application/json, text/html', false],
  [chromium, true],
  ['text/html', true],
  ['TEXT/HTML; charset=utf-8', true],
  ['text/*', true],
  ['text/html, */*', true],
  ['text/html, */*; q=0.01', true],
  ['text/html;q=0.8, application/json;q=0.9', false],
  ['text/html;q=0.9, application/json;q=0.8', true],
  ['text/html;q=0, */*', false],
  ['text/html;q=0', false],
  // An invalid weight makes no type acceptable.
  ['text/html;q=2, application/json', false],
  ['text/html;q=x', false],
  [',,;;q=,', false],
])('Accept: %s', (accept, html) => {
  expect(prefersHtml(accept, 'application/json; charset=utf-8')).toBe(html)
})

test('a text body is preferred as much as HTML', () => {
  expect(prefersHtml('text/*', 'text/plain')).toBe(false)
  expect(prefersHtml('text/html, text/*', 'text/plain')).toBe(true)
})

test('a value that is longer than any client has reason to send prefers nothing', () => {
  const chosen = (length: number): boolean =>
    prefersHtml('text/html,'.padEnd(length, 'image/png,'), 'text/plain')
  expect(chosen(1024)).toBe(true)
  expect(chosen(1025)).toBe(false)
})
