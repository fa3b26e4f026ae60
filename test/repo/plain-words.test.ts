import { describe, expect, test } from 'vitest'
import { findInRepository, findWordings } from '../../scripts/plain-words.ts'

/** Names of the wordings found in a line. */
const namesIn = (line: string): string[] => findWordings(line).map(({ wording }) => wording.name)

describe('the checker of wordings', () => {
  test.each([
    ['/** What is left of the window. */', 'headless clause'],
    ['Reads what has come so far.', 'headless clause'],
    ['refunds the units of who is banned', 'headless clause'],
    ["test('who is denied gets 403', async () => {", 'headless clause'],
    ['a connection of HTTP/2, idle', 'X of HTTP'],
    ['the status of HTTP.', 'X of HTTP'],
    ['const MOST_ENTRIES = 10', 'MOST_, LEAST_, LONGEST_'],
    ['const LISTENERS_AT_MOST = 8', 'MOST_, LEAST_, LONGEST_'],
    ['const longestLine = 80', 'MOST_, LEAST_, LONGEST_'],
    ['an empty value is none', 'is none'],
    ['the stream is to be reset', 'is to be'],
    ['It resolves, also if that fails.', 'also if'],
    ['The text behind the first blank.', 'behind for after'],
    ['the state is that which Redis has', 'that which'],
    ['a body that finds no room', 'says none, finds no room'],
    ['the limits in force', 'in force'],
    ['  /** Of the longest one. */', 'comment without a subject'],
    ['/** As `read`, for bytes. */', 'comment without a subject'],
    ['/** Those of all workers, by name. */', 'comment without a subject'],
    ["  test('nor is one held that %s', async () => {", 'title that continues the one before'],
    ["test.each([1])('but not %s', () => {", 'title that continues the one before'],
    [`  // ${'long '.repeat(28)}`, 'comment over 140 columns'],
  ])('finds in %j: %s', (line, name) => {
    expect(namesIn(line)).toEqual([name])
  })

  test.each([
    'The backend got the request, which is in flight.',
    'a client that is banned',
    'the parts of HTTP/2 frames',
    'with the fields of HTTP/1.1 requests',
    'a server behind another proxy',
    'const MAX_ENTRIES = 10',
    'if there is none, the default applies',
    '/** Of these, the refused ones. */',
    "test('a refused request counts for nobody', () => {",
    `const text = '${'long '.repeat(28)}'`,
  ])('finds nothing in %j', (line) => {
    expect(namesIn(line)).toEqual([])
  })

  test('a finding has the number and the text of its line', () => {
    expect(findWordings('a\nb\nit is to be c\n')).toMatchObject([{ line: 3, text: 'it is to be c' }])
  })
})

test('docs, comments, messages and titles have none of the wordings: npm run lint:words', () => {
  const found = findInRepository().map(
    ({ path, line, text, wording }) => `${path}:${line}: ${wording.name} (write ${wording.instead}): ${text}`,
  )
  expect(found).toEqual([])
})
