import fc from 'fast-check'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { expect, test } from 'vitest'
import { gatewayTable } from '../../proxy/config/settings-table.ts'
import { loadGatewaySettings } from '../../proxy/config/settings.ts'
import { SettingsError } from '../../shared/settings/settings-error.ts'
import { fileNames, variableName } from '../../shared/settings/table.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { anyCharacters } from '../support/random/any-characters.ts'
import { runs } from '../support/random/runs.ts'

/**
 * Any environment and any file are either accepted or rejected with one line for each mistake, fit for a terminal. No other error is ever
 * thrown, because operators would get a stack trace.
 */
const settings = Object.entries(gatewayTable)
const variables = settings.map(([property]) => variableName(property))
const fields = [...settings.flatMap(([property, setting]) => fileNames(property, setting)), 'limits']
const directory = makeTemporaryDirectory()

function expectTakenOrTold(env: Record<string, string>, yaml: string): void {
  writeFileSync(join(directory, 'sluice.yaml'), yaml)
  try {
    loadGatewaySettings(env, directory)
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error
    expect(error.problems.length).toBeGreaterThan(0)
    for (const problem of error.problems)
      expect(problem).toMatch(/^[^\p{C}\p{Zl}\p{Zp}]+: [^\p{C}\p{Zl}\p{Zp}]+$/u)
  }
}

const anyText = fc.oneof(
  anyCharacters(30),
  fc.string({ unit: fc.constantFrom(...Array.from('0123456789abhmstpr:/@.,-*[]{}%#?;\\"\' \n\t\0')) }),
)
const plausibleText = fc.oneof(
  fc.constantFrom(
    '1',
    '0',
    'auto',
    '::1',
    '10.0.0.0/8',
    'http://app:3000/x',
    'redis://:p@h:1/2',
    'info',
    '15m',
    '1g',
  ),
  anyText,
)

test('any environment is accepted, or rejected with a message', () => {
  const environments = fc.dictionary(fc.constantFrom(...variables), plausibleText)
  fc.assert(
    fc.property(environments, (env) => expectTakenOrTold(env, '')),
    { numRuns: runs(300) },
  )
})

test('any text as the file is accepted, or rejected with a message', () => {
  const yamlish = fc.string({
    unit: fc.constantFrom(
      ...Array.from('ab01:-?#&*!|>%@`\'"[]{},. \t\n'),
      'limits',
      '\n  - ',
      ': ',
      '<<',
      '---\n',
      '!!',
      '%YAML 1.1\n',
    ),
    maxLength: 80,
  })
  const texts = fc.oneof(yamlish, anyText)
  fc.assert(
    fc.property(texts, (text) => expectTakenOrTold({}, text)),
    { numRuns: runs(1_000) },
  )
})

test('any values in the file are accepted, or rejected with a message', () => {
  const anyValue = fc.oneof(plausibleText, fc.jsonValue({ maxDepth: 3 }), fc.double(), fc.integer())
  const routes = fc.oneof(
    fc.constantFrom('GET /a', '* /*', 'GET,POST /a/:b/*', 'post /x'),
    fc.string({
      unit: fc.constantFrom(
        'GET',
        'get',
        '*',
        ',',
        ' ',
        '/',
        '//',
        '..',
        ':',
        'a',
        '%2F',
        '%6c',
        '%',
        '?',
        ';',
        'é',
        '\ud800',
        '\\',
        '{',
      ),
    }),
  )
  const rules = fc.record(
    {
      name: fc.oneof(fc.constantFrom('a', 'b', '__proto__'), anyValue),
      match: fc.oneof(routes, fc.array(routes), anyValue),
      except: fc.oneof(routes, fc.array(routes), anyValue),
      key: fc.oneof(fc.constantFrom('ip', 'header:x', 'header:__proto__'), anyValue),
      requests: anyValue,
      window: fc.oneof(fc.constantFrom('1s', '15m', '366d'), anyValue),
      mode: fc.oneof(fc.constantFrom('enforce', 'shadow'), anyValue),
      onStoreError: fc.oneof(fc.constantFrom('local', 'open'), anyValue),
      ['__proto__']: anyValue,
      windw: anyValue,
    },
    { requiredKeys: ['name', 'match'] },
  )
  const files = fc
    .tuple(
      fc.dictionary(fc.oneof(fc.constantFrom(...fields), anyText), anyValue),
      fc.array(fc.oneof(rules, anyValue), { maxLength: 4 }),
    )
    .map(([values, limits]) => stringify({ ...values, limits }))
  fc.assert(
    fc.property(files, (yaml) => expectTakenOrTold({}, yaml)),
    { numRuns: runs(500) },
  )
})

test('no secret is ever shown', () => {
  const secret = 'hunter2hunter2'
  const around = fc.string({
    unit: fc.constantFrom(
      'redis',
      's',
      ':',
      '/',
      '//',
      '@',
      '?',
      '#',
      ',',
      'host',
      '0',
      '[',
      ']',
      ' ',
      '+',
      '.',
    ),
  })
  fc.assert(
    fc.property(around, around, (before, after) => {
      const url = `redis://${before}:${secret}@${after}`
      try {
        loadGatewaySettings({ REDIS_URL: url, ADMIN_TOKEN: `${secret} ${before}` }, '/')
      } catch (error) {
        expect(String(error)).not.toContain(secret)
      }
    }),
    { numRuns: runs(500) },
  )
})
