import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { readPart } from '../../../proxy/limits/keys/part-values.ts'
import { createAddressReader } from '../../../proxy/request/addresses/client-address.ts'
import { readTarget } from '../../../proxy/request/target/target.ts'

// The attack: a client spells its session in ever new ways. Decoders of base64 skip characters, or take several for one, so that the
// backend reads each spelling as the same session, and the gateway as a new client.

const client = { address: '192.0.2.1', prefix: '192.0.2.1' }

function valuesOf(kind: 'cookie' | 'query', sent: string): readonly string[] {
  const target = readTarget('GET', kind === 'query' ? `/?sid=${sent}` : '/')
  if (typeof target === 'string') throw new Error(target)
  const headers = kind === 'cookie' ? { cookie: `sid=${sent}` } : {}
  const addresses = createAddressReader([])
  return readPart(
    { kind, name: 'sid' },
    { client, host: 'a.example', target, claims: undefined, headers, addresses },
  )
}

const header = 'eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0'
const encrypted = 'Kx_3vQ-9bWl0bmVzcyB0aGUgcG93ZXIgb2YgYSBsb25nIGNpcGhlcnRleHQ'
const flask = '.eJyrVkosLclQslJKTMnNzFOqBQAjVQR5'

describe.each([
  [
    'JWE, as of Auth.js',
    `${header}..kLr-1mV7_hS3aQwE.${encrypted}.Zm9vYmFyYmF6cXV1eHh5eg`,
    [
      `${header}..kLr-1mV7_hS3aQwE.${encrypted.replaceAll('_', '/').replaceAll('-', '%2B')}.Zm9vYmFyYmF6cXV1eHh5eg`,
      `${header}..kLr-1mV7_hS3aQwE.${encrypted.replace('bWl', 'b!W*l')}.Zm9vYmFyYmF6cXV1eHh5eg`,
      `${header}..kLr-1mV7_hS3aQwE.${encrypted.slice(0, -1)}R.Zm9vYmFyYmF6cXV1eHh5eh`,
      `${header}..kLr-1mV7_hS3aQwE.${encrypted}.Zm9v~YmFyYmF6cXV1eHh5eg==`,
    ],
  ],
  [
    'a session of Flask',
    'eyJ1c2VyIjoxfQ.ZVq1aA.2x9dUo7vKz_8bq3mE-1yTnR4sWc',
    [
      'eyJ1c2VyIjoxfQ.ZVq1aA.2x9d!Uo7vKz_8bq3mE-1yTnR4sWd',
      'eyJ1c2VyIjoxfQ.ZVq1aA.2x9dUo7vKz/8bq3mE-1yTnR4sWc=~',
    ],
  ],
  [
    'a compressed session of Flask',
    `${flask}.ZVq1aA.2x9dUo7vKz_8bq3mE-1yTnR4sWc`,
    [`${flask}.ZVq1aA.2x9*dUo7vKz_8bq3mE-1yTnR4sWc`],
  ],
  [
    'a ticket of ASP.NET',
    'CfDJ8Nn-x_3vQ9bWl0bmVzcyB0aGUgcG93ZXIgb2YgYSBsb25n-aXBoZXJ0ZXh0',
    ['CfDJ8Nn%2Bx/3vQ9bWl0bmVzcyB0aGUgcG93ZXIgb2YgYSBsb25n-aXBoZXJ0ZXh0=='],
  ],
  [
    'a JSON Web Token',
    'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln',
    ['eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lo', 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c!2ln'],
  ],
])('%s', (_, usual, others) => {
  test.each(['cookie', 'query'] as const)('a session is one client in each spelling, in a %s', (kind) => {
    const [value] = valuesOf(kind, usual)
    expect(valuesOf(kind, usual)).toHaveLength(1)
    for (const other of others) expect(valuesOf(kind, other), other).toContain(value)
  })
})

test('different sessions are different clients', () => {
  const drawn = Array.from({ length: 1000 }, () => randomBytes(30).toString('base64url'))
  expect(new Set(drawn.flatMap((sid) => valuesOf('cookie', sid))).size).toBe(1000)
  const tokens = drawn.map((text) => `${header}..kLr-1mV7_hS3aQwE.${text}.Zm9v`)
  expect(new Set(tokens.flatMap((sid) => valuesOf('cookie', sid))).size).toBe(1000)
  for (const short of [
    ['a-b', 'ab'],
    ['ey.a.b', 'ey.a.c'],
    ['1.5-x', '15x'],
  ])
    expect(new Set(short.flatMap((sid) => valuesOf('cookie', sid))).size).toBe(2)
})

test.each([
  ['signatures', (i: number) => `eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.x${i}`],
  ['characters that decoders skip', (i: number) => `${'a'.repeat(40)}${'!'.repeat(i)}`],
])('a session after too many %s is not left out', (_, spelling) => {
  const spellings = Array.from({ length: 12 }, (_, i) => spelling(i))
  expect(valuesOf('cookie', `${spellings.join('; sid=')}; sid=real`).length).toBeGreaterThan(8)
  expect(valuesOf('query', `${spellings.join('&sid=')}&sid=real`).length).toBeGreaterThan(8)
})
