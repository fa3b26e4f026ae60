import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { bodyKeysOf } from '../../../proxy/limits/keys/body/body-keys.ts'
import { bodyValues, KeyBody } from '../../../proxy/limits/keys/body/key-body.ts'
import { BodyNames } from '../../../proxy/limits/keys/body/names/body-names.ts'
import { hashedKeyOf } from '../../../proxy/limits/keys/partition-key.ts'
import { seededRandom } from '../../support/random/seeded-random.ts'
import { testSeed } from '../../support/random/seed.ts'
import { installDebianPackages, installNpmPackages } from '../../support/run/packages.ts'
import { drawRequest, type AccountPath, type DrawnRequest } from './bodies.ts'
import { bodyReaders, type BodyReader } from './readers.ts'

// Asks real frameworks which value they read for `email`, or for `user.email`, in a body, and whether a rule with `key: body:email`, or
// `body:user.email`, counts the request for that value: a part of `npm run test:backends`. A value that a framework reads and the rule does
// not count bypasses the limit.

const { values: options } = parseArgs({
  options: {
    seed: { type: 'string', default: String(testSeed()) },
    bodies: { type: 'string', default: '10000' },
    only: { type: 'string', default: '' },
    path: { type: 'string', default: 'both' },
  },
})
/** U+FFFD, as one character per byte. */
const replacement = '\xef\xbf\xbd'
/** Matches a line like those between parts. Parsers disagree about where it ends, and no account has such a name. */
const isAcrossParts = /[\r\n](?:--|content-)/i
/**
 * The share of all requests that may stay unanswered. PHP's own server refuses queries with bytes beyond ASCII; formidable throws
 * exceptions that cannot be caught.
 */
const MAX_UNANSWERED = 0.05
const paths = (['email', 'user.email'] as const).filter(
  (path) => options.path === 'both' || options.path === path,
)
const random = seededRandom(Number(options.seed))
const chosen = bodyReaders.filter(({ name }) => name.toLowerCase().includes(options.only.toLowerCase()))

installNpmPackages(join(import.meta.dirname, '..'))
const missing = chosen.flatMap(({ needs }) => (needs && !isInstalled(needs.check) ? needs.names : []))
installDebianPackages([...new Set(missing)])
for (const { name, needs } of chosen)
  if (needs && !isInstalled(needs.check)) throw new Error(`${name} needs ${needs.names.join(', ')}`)

console.log(`seed ${options.seed}, ${options.bodies} bodies for each of ${chosen.length} frameworks\n`)
let failed = 0
for (const reader of chosen) for (const path of paths) judge(reader, path)
process.exit(failed > 0 || chosen.length === 0 ? 1 : 0)

function judge(reader: BodyReader, path: AccountPath): void {
  const requests = Array.from({ length: Number(options.bodies) }, () => drawRequest(random, path))
  const read = ask(reader, requests, path)
  const unanswered = read.filter((values) => values === null).length
  const uncounted = requests.flatMap((request, i) =>
    findUncounted(request, read[i] ?? [], path).map((value) => [request, value]),
  )
  const found = read.filter((values) => values && values.length > 0).length
  console.log(
    `${reader.name.padEnd(28)} ${path.padEnd(10)} ${String(found).padStart(7)} read ${String(uncounted.length).padStart(5)} uncounted ${String(unanswered).padStart(5)} unanswered`,
  )
  for (const [request, value] of uncounted.slice(0, 6))
    console.log(`  FAILED ${JSON.stringify(request)} is ${JSON.stringify(value)}`)
  if (uncounted.length > 0 || found === 0 || unanswered > requests.length * MAX_UNANSWERED) failed++
}

function isInstalled([program, ...args]: readonly [string, ...string[]]): boolean {
  return spawnSync(program, args, { stdio: 'ignore' }).status === 0
}

/** @returns for each request the values that the framework reads, as one character per byte; null if it does not answer */
function ask(
  { program, args, reader, name }: BodyReader,
  requests: readonly DrawnRequest[],
  path: AccountPath,
): (string[] | null)[] {
  // Frameworks keep parts with a filename as temporary files, and remove them late or never.
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bodies-'))
  const { status, stdout, stderr } = spawnSync(program, args, {
    input: JSON.stringify(
      requests.map((one) => ({ ...one, body: Buffer.from(one.body, 'latin1').toString('base64') })),
    ),
    env: { ...process.env, TMPDIR: folder, READER: reader, NAMES: path },
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  })
  rmSync(folder, { recursive: true })
  if (status !== 0) throw new Error(`${name}: ${stderr}`)
  return (JSON.parse(stdout) as (string[] | null)[]).map(
    (values) => values?.map((value) => Buffer.from(value, 'base64').toString('latin1')) ?? null,
  )
}

/** The values for which the request does not count. A request that counts for too many clients is rejected. */
function findUncounted(
  { types, query, body }: DrawnRequest,
  values: readonly string[],
  name: AccountPath,
): string[] {
  if (values.length === 0) return []
  const rawHeaders = types.flatMap((type) => ['content-type', type])
  const bytes = Buffer.from(body, 'latin1')
  const sent = bytes.length === 0 ? ({ unread: 'missing' } as const) : { bytes, isWhole: true }
  const part = { kind: 'body', name, path: name.split('.') } as const
  const read = new KeyBody(sent, { rawHeaders }, query === '' ? '/' : `/?${query}`, new BodyNames([part]))
  const keys = bodyKeysOf({ partition: [part] }, () => [], read, 'address')
  if (!keys) return []
  // Bytes that are not UTF-8 are not part of any account name.
  return values.filter((value) => {
    if (value.includes(replacement) || isAcrossParts.test(value)) return false
    const clients = bodyValues(value, false).filter((client) => /[\p{L}\p{N}]/u.test(client))
    return !clients.every((client) => keys.requests.has(hashedKeyOf(`${client.length}:${client}`)))
  })
}
