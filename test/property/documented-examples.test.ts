import fc from 'fast-check'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { writeMmdb } from '../support/geo/mmdb.ts'
import { problemsOf } from '../support/gateway/settings.ts'
import { runs } from '../support/random/runs.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'

// People start from an example in the docs and change a value: for every change, the gateway reports mistakes, and an editor agrees.

const root = join(import.meta.dirname, '../..')
const page = readFileSync(join(root, 'docs/configuration.md'), 'utf8')
const examples = [...page.matchAll(/```yaml\n([^]*?)```/g)].map(([, yaml = '']): unknown => parse(yaml))

const values: readonly unknown[] = [
  ...[null, true, false, 0, 1, -1, 1.5, 2 ** 40, '', ' ', 'x', '1', 'a b', 'true', 'auto', 'AUTO', [], {}],
  ...[
    '1h',
    '1H',
    '400d',
    '10m',
    '10M',
    'month',
    'MONTH',
    '4xx',
    '4XX',
    'ip',
    'IP',
    'global',
    'store',
    'jwt:a',
  ],
  ...['GET /', 'get /', '* /*', 'http://a', 'https://a/?b', '10.0.0.1', '10.0.0.0/8', 'enforce', 'json:a'],
  ...['header:a', 'header:authorization', `SHA256:${'A'.repeat(64)}`, 'Absent', 'de', 'AS1', 64_496],
  ...[
    ['x'],
    ['x', 'http://a'],
    [['x']],
    [1],
    ['GET /a', 'POST /b'],
    { a: 1 },
    { first: ['ip'] },
    { prefix: 1 },
  ],
]

type Path = readonly (string | number)[]

function pathsIn(value: unknown, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) => {
    const step = [...path, Array.isArray(value) ? Number(key) : key]
    return [step, ...pathsIn(inner, step)]
  })
}

function withValue(example: unknown, [step, ...rest]: Path, value: unknown): unknown {
  if (step === undefined) return value
  const inner = withValue(Reflect.get(Object(example) as object, step), rest, value)
  if (Array.isArray(example)) return example.with(Number(step), inner)
  return { ...(example as object), [step]: inner }
}

const changed = fc
  .constantFrom(...examples.flatMap((example) => pathsIn(example).map((path) => ({ example, path }))))
  .chain(({ example, path }) => fc.constantFrom(...values).map((value) => withValue(example, path, value)))

const secrets = {
  WEBHOOK_SECRET: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  DEVICE_SECRET: 'x'.repeat(40),
}

/** A folder with the files that the examples name. */
function folder(): string {
  const directory = makeTemporaryDirectory()
  for (const name of ['vpn.txt', 'too-many.html', 'crowdsec.key'])
    writeFileSync(join(directory, name), '192.0.2.7')
  for (const name of ['country.mmdb', 'asn.mmdb']) writeFileSync(join(directory, name), writeMmdb({}))
  return directory
}

test('any value in an example is taken by validator and JSON Schema, or the mistake is told in words of our own', () => {
  const schema = z.fromJSONSchema(
    JSON.parse(readFileSync(join(root, 'sluice.schema.json'), 'utf8')) as z.core.JSONSchema.JSONSchema,
  )
  const directory = folder()
  fc.assert(
    fc.property(changed, (written) => {
      // JSON is also YAML.
      writeFileSync(join(directory, 'sluice.yaml'), JSON.stringify(written))
      const problems = problemsOf(secrets, directory)
      for (const problem of problems)
        expect(problem).not.toMatch(/\b(?:Invalid|Too small|Too big|Unrecognized)\b/)
      if (problems.length === 0) expect(schema.safeParse(written).error?.issues).toBeUndefined()
    }),
    { numRuns: runs(3_000) },
  )
})
