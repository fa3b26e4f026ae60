import { KeyBody } from '../../../proxy/limits/keys/body/key-body.ts'
import { bodyNamesOf } from '../../../proxy/limits/keys/body/names/body-names.ts'
import { Devices } from '../../../proxy/limits/keys/devices/devices.ts'
import { mayOverrideMethod } from '../../../proxy/limits/keys/devices/method-override.ts'
import { partitionKeysOf } from '../../../proxy/limits/keys/partition-key.ts'
import { readPart, type KeySource } from '../../../proxy/limits/keys/part-values.ts'
import { readTarget } from '../../../proxy/request/target/target.ts'
import { openText, type CostRow } from '../../support/cost/row.ts'
import { makePolicy } from '../../support/limiter/charges.ts'
import { wallClockMs } from '../../support/calendar/wall-clock.ts'

/** The default of `MAX_HEADER_SIZE`. */
const largestBytes = 16 * 1024
const whole = { largestBytes, onlyWhole: true } as const

const devices = new Devices({ secrets: ['n'.repeat(40), 'o'.repeat(40)] })
const policy = {
  ...makePolicy('account', 5, 60_000),
  partition: [{ kind: 'query', name: 'user' }],
  device: { cookie: 'device', forMs: 90 * 86_400_000, status: [{ first: 200, last: 299 }] },
} as const

const names = bodyNamesOf([policy])

function recognize(rawTarget: string, cookie: string): unknown {
  const target = readTarget('POST', rawTarget)
  // The path has too many readings, for example, and the request is answered 400.
  if (typeof target === 'string') return target
  const source: KeySource = {
    client: { address: '192.0.2.1', prefix: '192.0.2.1' },
    host: 'app.example',
    target,
    claims: undefined,
    headers: { cookie },
    addresses: { readClientField: () => undefined },
    // Without a body, accounts would not be read, because a body could name another method.
    body: new KeyBody({ unread: 'missing' }, { rawHeaders: [] }, target.forwardTarget, names),
  }
  const keys = partitionKeysOf(policy, (part) => readPart(part, source))
  const charges = keys.slice(0, 8).map((partitionKey) => ({ policy, partitionKey }))
  return devices.recognize(charges, source, 'POST')
}

/** A token with the current time and a wrong MAC. */
const token = Buffer.concat([
  Buffer.from(
    Math.floor(wallClockMs() / 1000)
      .toString(16)
      .padStart(8, '0'),
    'hex',
  ),
  Buffer.alloc(48, 7),
]).toString('base64url')

const accounts = Array.from({ length: 8 }, (_, i) => `user=anna-${i}`).join('&')

const cookies: CostRow = {
  ...whole,
  name: 'device cookies',
  units: [
    `device=${token}; `,
    `${token}.`,
    'device=; ',
    ';',
    '=',
    ' ',
    '.',
    'device=.;',
    'device=',
    'a={n};',
  ],
  atoms: [`device=${token}`, token, 'device=', ';', '; ', ' ', '.', '=', 'a', '{n}', 'A'],
  wrap: (content) => `device=${content}; device=x`,
  open: openText((cookie) => recognize(`/login?${accounts}`, cookie)),
}

const named: CostRow = {
  ...whole,
  name: 'the accounts that a query names',
  units: [
    'user=a{n}&',
    '%75ser={n}&',
    '&',
    'user=',
    '=&',
    'user=%00&',
    'a={n}&',
    '%2575',
    '[',
    'user=a&user=A&',
  ],
  atoms: ['user=', '%75ser=', '&', ';', '=', 'a', 'A', '%61', '%00', '[', ']', '+', '{n}'],
  wrap: (content) => `user=${content}`,
  open: openText((query) => recognize(`/login?${query}`, `device=${token}`)),
}

const paths: CostRow = {
  ...whole,
  name: 'a path with parameters, which a device is known for',
  units: [';', ';a', ';a=', ';a={n}', ';=', 'a', '=', '/;a=1', ';a=1/b'],
  atoms: [';', '=', '/', 'a', 'A', ';a=1', '%3b', '{n}'],
  wrap: (content) => `/login;${content}`,
  open: openText((path) => recognize(`${path}?user=anna`, `device=${token}`)),
}

const methods: CostRow = {
  ...whole,
  largestBytes: 64 * 1024,
  name: 'methods in a form',
  units: [
    'method=a{n}&',
    '_method=a{n}&',
    '%5fmethod=x&',
    '%25',
    '%2525',
    '\\u005f',
    '&',
    '.method',
    'method=%41&',
    '\0',
    ' _metho',
  ],
  atoms: ['method=', '_method', '%5f', '\\u005f', '&', ';', '=', 'a', '%00', '[', ' ', '+', '{n}', 'post'],
  wrap: (content) => `method=x&${content}`,
  open: openText((text) => {
    const sent = { bytes: Buffer.from(text, 'latin1'), isWhole: true }
    const rawHeaders = ['content-type', 'application/x-www-form-urlencoded']
    const body = new KeyBody(sent, { rawHeaders }, '/login', names)
    return mayOverrideMethod({ headers: {}, body }, 'POST')
  }),
}

export const rows: readonly CostRow[] = [cookies, named, paths, methods]
