import { describe, expect, test } from 'vitest'
import { readYamlMapping } from '../../../proxy/config/file/yaml-document.ts'
import { directoryWith, loadWithFile, problemsOf } from '../../support/gateway/settings.ts'

const env = {
  PORT_NUMBER: '8081',
  HOST_NAME: 'app',
  EMPTY: '',
  LIST: '[a, b]',
  TRICK: 'x\nport: 1',
  QUOTE: '"x"',
}

describe('a value', () => {
  test.each([
    ['a: ${PORT_NUMBER}', 8081],
    ["a: '${PORT_NUMBER}'", '8081'],
    ['a: "${PORT_NUMBER}"', '8081'],
    ['a: http://${HOST_NAME}:${PORT_NUMBER}/', 'http://app:8081/'],
    ['a: ${UNSET:-30}', 30],
    ['a: ${EMPTY:-30}', 30],
    ['a: ${UNSET:-}', ''],
    ['a: x${UNSET:-}', 'x'],
    ['a: ${PORT_NUMBER:-30}', 8081],
    ['a: $${HOST_NAME}', '${HOST_NAME}'],
    ['a: $${not.a.name} costs $${5} or $$', '${not.a.name} costs ${5} or $$'],
    ['a: ${UNSET:-$5}', '$5'],
    ['a: ${UNSET:-$$}', '$$'],
    ['a: $HOST_NAME', '$HOST_NAME'],
    // A variable is a single value, no matter what it contains.
    ['a: ${LIST}', '[a, b]'],
    ['a: ${TRICK}', 'x\nport: 1'],
    ['a: ${QUOTE}', '"x"'],
  ])('%s', (text, value) => {
    expect(readYamlMapping(text, env)).toMatchObject({ value: { a: value }, mistakes: [] })
  })

  test('variables are replaced in lists, and in aliases', () => {
    const { value } = readYamlMapping('a: [&x "${HOST_NAME}", *x]', env)
    expect(value).toEqual({ a: ['app', 'app'] })
  })
})

test.each([
  'a #b',
  '&a b',
  '!a b',
  '--- a',
  '*a',
  'a: b',
  '- a',
  '"a" b',
  '{ a: b }',
  '%a',
  '1 #2',
  'true #no',
])('the whole text of a variable with %j is the value, with and without quotes', (text) => {
  const read = (value: string): unknown =>
    loadWithFile(`limits: []\nrequestHeaders:\n  x-login: ${value}\n`, { LOGIN: text }).settings
      .requestHeaders
  expect(read('${LOGIN}')).toEqual(['x-login', text])
  expect(read("'${LOGIN}'")).toEqual(['x-login', text])
  expect(read('Basic ${LOGIN}')).toEqual(['x-login', `Basic ${text}`])
})

test('the name of a field is no place for a variable', () => {
  expect(readYamlMapping('${HOST_NAME}: 1', env).value).toEqual({ '${HOST_NAME}': 1 })
})

test('a variable without a value is a mistake, with its line', () => {
  const file = 'port: 8080\nlimits:\n  - { name: a, match: GET /, requests: "${MANY}", window: "${LONG}" }\n'
  expect(problemsOf({}, directoryWith(file))).toEqual([
    'sluice.yaml:3: the variable MANY is not set: set it, or write ${MANY:-default}',
    'sluice.yaml:3: the variable LONG is not set: set it, or write ${LONG:-default}',
  ])
})

test('settings and limits', () => {
  const rule = 'limits:\n  - name: a\n    match: GET /\n    requests: ${MANY:-7}\n    window: ${LONG:-1m}\n'
  const { settings } = loadWithFile(`port: \${P}\n${rule}`, { P: '81', LONG: '2m' })
  expect(settings).toMatchObject({ port: 81, rules: [{ policy: { quota: 7, windowMs: 120_000 } }] })
})

describe('conditions', () => {
  const load = (condition: string, env = {}): unknown => {
    const rule = `limits: [{ name: a, match: GET /, requests: 1, window: 1m, when: ${condition} }]`
    const jwt = condition.includes('jwt') ? 'jwt: { jwksUrl: https://login.example.com/keys }' : ''
    return loadWithFile(`${rule}\n${jwt}`, env).settings.rules[0]?.when
  }

  test.each([
    ['1.10', '1.10'],
    ['010', '010'],
    ['0x1F', '0x1F'],
    ['1e3', '1e3'],
    ['12345678901234567890', '12345678901234567890'],
    ['True', 'True'],
    ['"${VERSION}"', '1.20'],
    ['7', '7'],
  ])('compare with %s as it is written', (written, text) => {
    const anyOf = [{ kind: 'is', text }]
    const env = { VERSION: '1.20' }
    expect(load(`{ header: { x-v: ${written} } }`, env)).toMatchObject([{ kind: 'header', anyOf }])
    expect(load(`{ cookie: { v: [${written}, a] } }`, env)).toMatchObject([
      { kind: 'cookie', anyOf: [...anyOf, { kind: 'is', text: 'a' }] },
    ])
    expect(load(`[{ query: { v: ${written} } }]`, env)).toMatchObject([{ kind: 'query', anyOf }])
    expect(load(`{ userAgent: ${written} }`, env)).toMatchObject([{ kind: 'userAgent', anyOf }])
  })

  test('compare with a variable as it is set', () => {
    const rule = 'name: a, match: GET /, requests: 1, window: 1m'
    const file = `limits:\n  - when:\n      header:\n        x-v: \${VERSION}\n    ${rule.replaceAll(', ', '\n    ')}\n`
    const { settings } = loadWithFile(file, { VERSION: '1.20' })
    expect(settings.rules[0]?.when).toMatchObject([{ kind: 'header', anyOf: [{ kind: 'is', text: '1.20' }] }])
  })

  test('compare a claim with the number or boolean that YAML reads', () => {
    expect(load('{ jwt: { level: 1.0 } }')).toMatchObject([{ anyOf: [{ kind: 'is', text: '1' }] }])
    expect(load('{ jwt: { staff: True } }')).toMatchObject([{ anyOf: [{ kind: 'is', text: 'true' }] }])
  })
})
