import { expect, test } from 'vitest'
import { createPathValues, pathValuesOfName } from '../../../proxy/limits/rules/path-values.ts'
import { comparableValues } from '../../../proxy/limits/keys/part-values.ts'
import { cookieValues } from '../../../proxy/request/values/cookie-values.ts'
import { queryValues } from '../../../proxy/request/values/query-values.ts'
import { readMatchPaths } from '../../../proxy/request/target/match-path.ts'

// The attack: `Ádmin` finds the account `admin` with MySQL's default collation, and each such spelling was a client of its own.

const pathValues = createPathValues(['/users/:id'], 'id')
const readers: Record<string, (sent: string) => readonly string[]> = {
  'a parameter': (sent) => comparableValues(queryValues(`/?user=${sent}`, 'user', 8)),
  'a cookie': (sent) => comparableValues(cookieValues(`user=${sent}`, 'user', 8)),
  'a segment of the path': (sent) => {
    const paths = readMatchPaths(`/users/${sent}`, { hasFormat: false })
    return typeof paths === 'string' ? [] : pathValues(paths)
  },
  'a segment of the path, from an operator': (sent) => pathValuesOfName(decodeURIComponent(sent)),
}

test.each(Object.entries(readers))('an account in %s counts as databases compare it', (_, read) => {
  for (const name of ['Ádmin', 'admi\u0301n', '\uff41dmin', 'ad\u00admin', '\u24d0dmin', '\ud835\udc1admin'])
    expect(read(encodeURIComponent(name)), name).toEqual(['admin'])
  expect(read('a%20%20b')).toContain('a b')
  expect(read(encodeURIComponent('stra\u00dfe'))).toContain('strasse')
})

test.each(Object.entries(readers))('a value of accents alone in %s is not dropped', (_, read) => {
  expect(read('%CC%81')).toEqual(['\u0301'])
})

// MariaDB 10.11 finds the account of each name: `utf8mb4_unicode_ci` ignores a NUL and U+0345 and takes the iota below for nothing, and to
// `utf8mb4_general_ci` `ß` is one `s`.
const found = [
  ['vic\0tim', 'victim'],
  ['vic\u0345tim', 'victim'],
  ['stra\u00dfe', 'strase'],
  ['\u1fb3da', '\u03b1da'],
] as const

test.each([
  ['a parameter', (name: string) => `/?user=${encodeURIComponent(name)}`],
  [
    'a parameter that is escaped twice',
    (name: string) => `/?user=${encodeURIComponent(encodeURIComponent(name))}`,
  ],
])('%s counts for the account that MariaDB finds', (_, targetOf) => {
  for (const [sent, account] of found)
    expect(comparableValues(queryValues(targetOf(sent), 'user', 8)), account).toContain(account)
})

test.each([
  ['a cookie', (name: string) => encodeURIComponent(name)],
  [
    'a quoted cookie with octal escapes',
    (name: string) =>
      `"${Array.from(Buffer.from(name), (byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('')}"`,
  ],
])('%s counts for the account that MariaDB finds', (_, valueOf) => {
  for (const [sent, account] of found)
    expect(comparableValues(cookieValues(`user=${valueOf(sent)}`, 'user', 8)), account).toContain(account)
})
