import { expect, test } from 'vitest'
import { nameListenSetting } from '../../../shared/start-error.ts'

const settings = { host: 'ADMIN_HOST', port: 'ADMIN_PORT' }
const failed = (properties: object): Error => Object.assign(new Error('listen'), properties)

test.each([
  [
    'a port that another process has',
    { code: 'EADDRINUSE', address: '127.0.0.1', port: 9090 },
    'cannot listen: 127.0.0.1 port 9090 is in use by another process, set ADMIN_PORT to another',
  ],
  [
    'a port for root only',
    { code: 'EACCES', address: '::', port: 80 },
    'cannot listen: :: port 80 needs more privileges than this user has, set ADMIN_PORT to another',
  ],
  [
    'an address of another machine',
    { code: 'EADDRNOTAVAIL', address: '192.0.2.1', port: 80 },
    'cannot listen: ADMIN_HOST is "192.0.2.1", which is not an address of this machine',
  ],
])('the message about %s names the setting to change', (_, properties, message) => {
  expect(nameListenSetting(failed(properties), settings, '192.0.2.1').message).toBe(message)
})

test('an error that no setting has caused is unchanged', () => {
  const error = failed({ code: 'EMFILE', address: '127.0.0.1', port: 80 })
  expect(nameListenSetting(error, settings, undefined)).toBe(error)
})
