import { describe, expect, test } from 'vitest'
import { MAX_READINGS } from '../../../proxy/limits/keys/partition-key.ts'
import { cookieValues } from '../../../proxy/request/values/cookie-values.ts'
import { queryValues } from '../../../proxy/request/values/query-values.ts'

/*
 * The attack: over HTTP/2 a client sends a header of 4 KB once, and then refers to it with one byte. The gateway read each of the thousands
 * of values of one name in such a header.
 */

type Read = (spelled: string, count: number) => readonly string[]

const cookies: Read = (spelled, count) =>
  cookieValues(Array.from({ length: count }, () => spelled).join('; '), 'sid', MAX_READINGS)
const parameters: Read = (spelled, count) =>
  queryValues(`/?${Array.from({ length: count }, () => spelled).join('&')}`, 'sid', MAX_READINGS)

describe.each([
  ['a cookie', cookies],
  ['a parameter', parameters],
] as const)('%s', (_, read) => {
  test.each(['sid=a', '%73id=%61', 'sid=', 'sid[]=a'])(
    'that is there as %s 64 times has its value',
    (spelled) => {
      expect(read(spelled, 64)).toEqual(spelled.endsWith('=') ? [] : ['a'])
    },
  )

  test.each(['sid=a', '%73id=%61', 'sid='])(
    'that is there as %s more often counts as too many clients',
    (spelled) => {
      expect(read(spelled, 64 + MAX_READINGS + 1).length).toBeGreaterThan(MAX_READINGS)
      expect(read(spelled, 3000).length).toBe(MAX_READINGS + 1)
    },
  )

  test('of which the names of hundreds of others have to be decoded counts as too many clients', () => {
    const others = (count: number): readonly string[] => read('%2541=b', count)
    expect(others(256)).toEqual([])
    expect(others(256 + MAX_READINGS + 1).length).toBeGreaterThan(MAX_READINGS)
    expect(others(2000).length).toBe(MAX_READINGS + 1)
  })
})

test('a cookie is found among thousands of other names in letters, digits and escapes of these', () => {
  const others = Array.from({ length: 3000 }, (_, i) => `other%5B${i}%5D=b; SIE=1; sidx=2; %73=3; s%69=4`)
  expect(cookieValues([...others, 'SID=a'].join('; '), 'sid', MAX_READINGS)).toEqual(['a'])
})
