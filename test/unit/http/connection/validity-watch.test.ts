import { X509Certificate } from 'node:crypto'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { watchCertificate } from '../../../../proxy/http/connection/tls/reload.ts'
import { ValidityWatch } from '../../../../proxy/http/connection/tls/validity-watch.ts'
import { recordLog } from '../../../support/limiter/recordings.ts'
import { certificateFiles, readPair } from '../../../support/network/certificates.ts'

const { cert, key } = readPair('first')
const { subject, validFromDate, validToDate } = new X509Certificate(cert)
const EXPIRED = { subject, msg: 'TLS certificate has expired: clients refuse it' }

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date', 'setInterval', 'clearInterval'] }))
afterEach(() => void vi.useRealTimers())

test.each([
  ['just valid', validFromDate, []],
  ['still valid', validToDate, []],
  [
    'not yet valid',
    validFromDate.getTime() - 1,
    [{ msg: 'TLS certificate is not valid yet: clients refuse it' }],
  ],
  ['expired', validToDate.getTime() + 1, [EXPIRED]],
])('a certificate that is %s is logged once', (_, now, expected) => {
  vi.setSystemTime(now)
  const { log, lines } = recordLog()
  const validity = new ValidityWatch(cert, log)
  for (let times = 0; times < 3; times++) validity.check()
  expect(lines).toHaveLength(expected.length)
  expect(lines).toMatchObject(expected)
  validity.watch(cert)
  expect(lines).toHaveLength(2 * expected.length)
})

test('a certificate that expires while it is in use is logged within ten seconds', () => {
  vi.setSystemTime(validToDate)
  const { log, lines } = recordLog()
  const { cert: certFile, key: keyFile } = certificateFiles('first')
  const use = (): never => expect.fail('it has not changed')
  const watching = watchCertificate({ certFile, keyFile, inUse: { cert, key }, use, log })
  expect(lines).toEqual([])
  vi.advanceTimersByTime(10_000)
  expect(lines).toMatchObject([EXPIRED])
  vi.advanceTimersByTime(60_000)
  expect(lines).toHaveLength(1)
  watching.close()
})
