import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { gatewayTable } from '../../proxy/config/settings-table.ts'
import { fileNames, variableName } from '../../shared/settings/table.ts'
import { writeMmdb } from '../support/geo/mmdb.ts'
import { directoryWith, loadWithFile, problemsOf } from '../support/gateway/settings.ts'

const root = join(import.meta.dirname, '../..')
const pages = ['docs/configuration.md', 'docs/backends.md', 'docs/tutorial.md', 'docs/how-to/*.md']
const text = globSync(pages, { cwd: root }).map((page) => readFileSync(join(root, page), 'utf8'))
const examples = [...text.join('\n').matchAll(/```yaml\n([^]*?)```/g)].map(([, yaml = '']) => yaml)
const exampleFile = readFileSync(join(root, 'sluice.example.yaml'), 'utf8')
const schemaText = readFileSync(join(root, 'sluice.schema.json'), 'utf8')

describe('the gateway accepts every example in the docs', () => {
  test('there are examples', () => expect(examples.length).toBeGreaterThan(10))

  test.each(examples)('docs/configuration.md, backends.md, tutorial.md, how-to/: %s', (yaml) => {
    const directory = directoryWith(yaml)
    for (const [page] of yaml.matchAll(/\.\/[\w-]+\.(?:html|txt|key)/g))
      writeFileSync(join(directory, page), 'x')
    for (const [page] of yaml.matchAll(/\.\/[\w-]+\.mmdb/g))
      writeFileSync(join(directory, page), writeMmdb({}))
    // Secrets never come from the file.
    const env = {
      WEBHOOK_SECRET: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
      DEVICE_SECRET: 'x'.repeat(40),
    }
    expect(problemsOf(env, directory)).toEqual([])
  })

  test('sluice.example.yaml begins with the built-in table', () => {
    const { settings, warnings } = loadWithFile(exampleFile)
    expect(settings.rules.slice(0, 6)).toEqual(loadWithFile('').settings.rules)
    // One warning for each of the two rules that count by header.
    expect(warnings).toHaveLength(2)
  })
})

describe('the JSON Schema', () => {
  const schema = z.fromJSONSchema(z.json().parse(JSON.parse(schemaText)) as z.core.JSONSchema.JSONSchema)

  test.each([...examples, exampleFile])('the JSON Schema takes %s', (yaml) => {
    expect(schema.safeParse(parse(yaml)).error?.issues).toBeUndefined()
  })

  test.each([
    'limits: [{name: x, match: GET /, requests: 1, window: 1m, countStatus: [4XX, 5xx]}]',
    `limits: []\nallowList: [{header: {x-probe: 'SHA256:${'A'.repeat(64)}'}}]`,
  ])('the JSON Schema takes other letter case where the gateway does: %s', (yaml) => {
    expect(problemsOf({}, directoryWith(yaml))).toEqual([])
    expect(schema.safeParse(parse(yaml)).error?.issues).toBeUndefined()
  })

  test.each([
    'prot: 80',
    'port: "80"',
    'port: 65536',
    'adminToken: 0123456789abcdef',
    'accessLog: sometimes',
    'storeTimeout: 100',
    'trustedProxies: 10.0.0.0/8',
    'limits: {}',
    'limits: [{}]',
    'limits: [{name: x, match: GET /, requests: 0, window: 1m}]',
    'limits: [{name: x, match: GET /, requests: 1, window: 1}]',
    'limits: [{name: x, match: get /, requests: 1, window: 1m}]',
    'limits: [{name: x, match: [], requests: 1, window: 1m}]',
    'limits: [{name: x, match: GET /, key: cookie, requests: 1, window: 1m}]',
    'limits: [{name: x, match: GET /, requests: 1, window: 1m, mode: off}]',
    'limits: [{name: x, match: GET /, requests: 1, window: 1m, windw: 1}]',
  ])('refuses %s', (yaml) => expect(schema.safeParse(parse(yaml)).success).toBe(false))

  test('describes every field', () => {
    const { properties } = JSON.parse(schemaText) as { properties: Record<string, { description?: string }> }
    for (const [name, { description }] of Object.entries(properties))
      expect(description, name).toMatch(/^[A-Z`].{10}/)
  })
})

test('editors name the fields of sluice.yaml, not the variables for the same settings', () => {
  const variables = Object.entries(gatewayTable).flatMap(([property, setting]) =>
    fileNames(property, setting).length > 0 ? [variableName(property)] : [],
  )
  const named = schemaText.match(/\b[A-Z]+(_[A-Z]+)+\b/g) ?? []
  expect(named.filter((name) => variables.includes(name))).toEqual([])
})
