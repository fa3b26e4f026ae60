import { expect, test } from 'vitest'
import { withHost } from '../../../../../proxy/limits/store/redis/connecting/redirections.ts'

test.each([
  ['MOVED 3999 :6381', 'MOVED 3999 192.0.2.1:6381'],
  ['ASK 3999 :6381', 'ASK 3999 192.0.2.1:6381'],
  ['MOVED 3999 192.0.2.7:6381', 'MOVED 3999 192.0.2.7:6381'],
  ['MOVED 3999 ::1:6381', 'MOVED 3999 ::1:6381'],
  [
    "NOPERM this user has no permissions to run the 'MOVED 3 :1'",
    "NOPERM this user has no permissions to run the 'MOVED 3 :1'",
  ],
])('a redirection without a host leads to the node that sent it: %s', (sent, read) => {
  expect(withHost(sent, '192.0.2.1')).toBe(read)
})
