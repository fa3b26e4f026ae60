import { expect, test } from 'vitest'
import { adminHere } from '../../../proxy/cli/operate/admin-here.ts'
import { directoryWith } from '../../support/gateway/settings.ts'

// The token goes to this address: another program may have the usual port.

const limits = 'limits:\n  - { name: a, match: GET /a, requests: 1, window: 1m }\n'

test.each([
  ['a file without a mistake', 'adminPort: 9393\n', {}, 'http://127.0.0.1:9393'],
  ['a mistake in a setting', 'adminPort: 9393\nport: none\n', {}, 'http://127.0.0.1:9393'],
  ['a file that is no YAML', 'adminPort: 9393\nport: [8080\n', {}, 'http://127.0.0.1:9393'],
  [
    'a variable that is not set here',
    'adminPort: 9393\nupstream: http://${APP}:3000\n',
    {},
    'http://127.0.0.1:9393',
  ],
  ['another host too', 'adminHost: ::1\nadminPort: 9393\nport: [8080\n', {}, 'http://[::1]:9393'],
  [
    'a variable that wins over it',
    'adminPort: 9393\nport: [8080\n',
    { ADMIN_PORT: '9494' },
    'http://127.0.0.1:9494',
  ],
  ['an invalid port', 'adminPort: none\nport: [8080\n', {}, 'http://127.0.0.1:9090'],
  ['another form', '"adminPort": 9393\nport: [8080\n', {}, 'http://127.0.0.1:9090'],
])('the gateway here is asked at the port of its file: %s', (_, lines, env, expected) => {
  expect(adminHere(env, directoryWith(lines + limits))).toBe(expected)
})
