import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { failureOfConnect } from '../../../../proxy/http/upstream/failure.ts'
import { CLOSED_PORT } from '../../../support/network/ports.ts'

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

test.each([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
])('a certificate of an unknown CA (%s) is a failure that names the setting for it', (code) => {
  const error = Object.assign(new Error('self-signed certificate; try --use-system-ca'), { code })
  const { kind, message } = failureOfConnect(error)
  expect(kind).toBe('refused')
  expect(message).toBe(
    `the certificate of the backend is not of a trusted CA (${code}): name its CA in UPSTREAM_CA_FILE, ` +
      'and have the backend send its intermediate certificates',
  )
})

test('if none of the addresses of a name can be reached, the failure gives the reason for each', async () => {
  const addresses = [
    { address: '127.0.0.1', family: 4 },
    { address: '::1', family: 6 },
  ]
  const socket = connect({
    host: 'app.test',
    port: CLOSED_PORT,
    lookup: (_, _options, found) => found(null, addresses),
  })
  const [error] = (await once(socket, 'error')) as [Error]
  const { kind, message } = failureOfConnect(error)
  expect(kind).toBe('refused')
  expect(message).toMatch(/^connect E\w+ 127\.0\.0\.1:2\b.*, connect E\w+ ::1:2\b/)
})

test.each([
  [[errorOf('EADDRNOTAVAIL', '2001:db8::1'), errorOf('ECONNREFUSED', '192.0.2.1')], 'refused'],
  [[errorOf('ECONNREFUSED', '2001:db8::1'), errorOf('EADDRNOTAVAIL', '192.0.2.1')], 'local-limit'],
  [[errorOf('EMFILE'), errorOf('EMFILE')], 'local-limit'],
])('the attempts %j to connect to a name are a failure of kind %s', (errors, kind) => {
  const [{ code = '' } = {}] = errors as NodeJS.ErrnoException[]
  expect(failureOfConnect(Object.assign(new AggregateError(errors), { code })).kind).toBe(kind)
})
