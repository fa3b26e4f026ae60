import { Devices } from '../../../proxy/limits/keys/devices/devices.ts'
import { partitionKeysOf } from '../../../proxy/limits/keys/partition-key.ts'
import { readPart, type KeySource } from '../../../proxy/limits/keys/part-values.ts'
import { openText, type CostRow } from '../../support/cost/row.ts'
import { makePolicy } from '../../support/limiter/limiters.ts'
import { wallClockMs } from '../../support/calendar/wall-clock.ts'

/** Of `MAX_HEADER_SIZE`, unless it is set. */
const largestBytes = 16 * 1024
const whole = { largestBytes, onlyWhole: true } as const

const devices = new Devices({ secrets: ['n'.repeat(40), 'o'.repeat(40)] })
const policy = {
  ...makePolicy('account', 5, 60_000),
  partition: [{ kind: 'query', name: 'user' }],
  device: { cookie: 'device', forMs: 90 * 86_400_000, status: [{ first: 200, last: 299 }] },
} as const

function recognize(query: string, cookie: string): unknown {
  const source = {
    target: { forwardTarget: `/login?${query}` },
    headers: { cookie },
  } as unknown as KeySource
  const keys = partitionKeysOf(policy, (part) => readPart(part, source))
  const charges = keys.slice(0, 8).map((partitionKey) => ({ policy, partitionKey }))
  return devices.recognize(charges, source, 'POST')
}

/** A token of now, whose MAC is wrong. */
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
  open: openText((cookie) => recognize(accounts, cookie)),
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
  open: openText((query) => recognize(query, `device=${token}`)),
}

export const rows: readonly CostRow[] = [cookies, named]
