import { expect, test } from 'vitest'
import { failureOfConnect } from '../../../../proxy/http/upstream/failure.ts'

function errorOf(code: string, address?: string): Error {
  return Object.assign(new Error(`connect ${code} ${address}`), { code, address })
}

test.each([
  ['no server listens', errorOf('ECONNREFUSED', '192.0.2.1'), 'refused'],
  ['no local port is free', errorOf('EADDRNOTAVAIL', '192.0.2.1'), 'local-limit'],
  ['this process has too many open files', errorOf('EMFILE'), 'local-limit'],
  ['this machine has no IPv6', errorOf('EADDRNOTAVAIL', '2001:db8::1'), 'refused'],
])('if %s, %s is %s', (_, error, kind) => {
  expect(failureOfConnect(error).kind).toBe(kind)
})
