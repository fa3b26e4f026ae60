import { spawnSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { credentialKeys } from '../../../proxy/limits/keys/credentials/credential-keys.ts'
import { MAX_READINGS } from '../../../proxy/limits/keys/partition-key.ts'
import { compileClientLists } from '../../../proxy/limits/clients/lists/client-lists.ts'
import { unknownClient } from '../../../proxy/request/addresses/client-address.ts'
import type { Policy } from '../../../proxy/policy.ts'
import { createTokenReader } from '../../../proxy/limits/keys/tokens/token-reader.ts'
import { TokenVerifier } from '../../../proxy/limits/keys/tokens/token-claims.ts'
import { seededRandom } from '../../support/random/seeded-random.ts'
import { testSeed } from '../../support/random/seed.ts'
import { installDebianPackages, installNpmPackages } from '../../support/run/packages.ts'
import { encoded, known, secret, spell, tokens } from './spellings.ts'

// Asks real libraries whose credentials they read in spellings of `Authorization` that no client would write, and compares the keys by
// which the gateway counts them: a part of `npm run test:backends`. Spellings that some library reads as the same client must share a key
// with that client's usual spelling. A token that a library verifies must count for its owner.

const { values: given } = parseArgs({
  options: {
    seed: { type: 'string', default: String(testSeed()) },
    spellings: { type: 'string', default: '10000' },
  },
})
const random = seededRandom(Number(given.seed))
const spelled = Array.from({ length: Number(given.spellings) }, () => spell(random))
const values = [...known.map(({ scheme, word }) => `${scheme} ${word}`), ...spelled]

installNpmPackages(import.meta.dirname)
installDebianPackages([
  'python3-jwt',
  'python3-jose',
  'python3-werkzeug',
  'ruby',
  'ruby-jwt',
  'php-cli',
  'php-mbstring',
])

type Answers = Readonly<Record<string, readonly (string | null)[]>>

const input = JSON.stringify({ values, secret, tokens, encoded })
const judges: readonly (readonly [program: string, script: string])[] = [
  ['/usr/bin/python3', 'judge.py'],
  ['/usr/bin/ruby', 'judge.rb'],
  ['/usr/bin/php', 'judge.php'],
  [process.execPath, 'judge.js'],
]
const answers: Answers = Object.assign({}, ...judges.map(ask)) as Answers

function ask([program, script]: readonly [string, string]): Answers {
  const path = join(import.meta.dirname, 'judges', script)
  const { stdout, stderr, status } = spawnSync(program, [path], {
    input,
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  })
  if (status !== 0) throw new Error(`${script} ended with ${status}: ${stderr}`)
  return JSON.parse(stdout) as Answers
}

const policy: Policy = {
  name: 'p',
  quota: 1,
  windowMs: 1000,
  algorithm: 'fixed',
  mode: 'enforce',
  onStoreError: 'local',
  partition: [{ kind: 'jwt', name: 'sub' }],
}
const reader = createTokenReader(
  [policy],
  new TokenVerifier({
    keySet: { current: () => secret, keyMissing: () => undefined },
    isSecret: true,
    issuer: undefined,
    audience: 'app',
    claims: ['sub'],
    capacity: 1000,
    telemetry: { tokenRead: () => undefined },
    now: Date.now,
  }),
)

const keyOf = new Map(
  known.map(({ client, scheme, word }) => [client, credentialKeys(`${scheme} ${word}`)[0]]),
)
/** A deny list with one of the clients. */
const denyListOf = new Map(
  known.map(({ client, scheme, word }) => {
    const entry = {
      kind: 'header',
      name: 'authorization',
      sha256: hash('sha256', `${scheme} ${word}`),
    } as const
    return [client, compileClientLists({ allowList: [], denyList: [entry], rules: [] })]
  }),
)
const isVerified = new Set(['alice', 'bob', 'expired'])
const verifies = /jwt|jose|token$|express (?:split|slice|replace|last)$/
let failures = 0
let accepted = 0
for (const [index, value] of values.entries()) {
  const keys = credentialKeys(value)
  const claims = await reader.read([policy], { rawHeaders: ['authorization', value] })
  // The gateway answers 400 in both cases.
  if (keys.length > MAX_READINGS || claims === 'too-many') continue
  const subs = (claims ?? []).map((each) => each.get('sub'))
  for (const [name, clients] of Object.entries(answers)) {
    const client = clients[index]
    const key = client === null || client === undefined ? undefined : keyOf.get(client)
    if (client === null || client === undefined || key === undefined) continue
    accepted++
    const isToken = isVerified.has(client) && verifies.test(name)
    const isDenied =
      denyListOf.get(client)?.findDenial(unknownClient, { rawHeaders: ['authorization', value] }) !==
      undefined
    const uncounted = !keys.includes(key)
      ? 'the key'
      : isToken && !subs.includes(client)
        ? 'jwt:sub'
        : isDenied
          ? ''
          : 'denyList'
    if (uncounted === '') continue
    if (failures++ < 20)
      console.log(
        `FAILED ${uncounted}: ${name} takes ${JSON.stringify(value)} for ${client}: ${JSON.stringify(keys)}`,
      )
  }
}
console.log('| library | accepted of these spellings |\n| --- | --- |')
for (const [name, clients] of Object.entries(answers))
  console.log(`| ${name} | ${clients.filter((client) => client !== null && keyOf.has(client)).length} |`)
console.log(
  `seed ${given.seed}, ${values.length} spellings, ${accepted} readings, ${failures} of them uncounted`,
)
process.exit(failures > 0 ? 1 : 0)
