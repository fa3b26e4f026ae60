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
    ['a: ${not.a.name}', '${not.a.name}'],
    ['a: $HOST_NAME', '$HOST_NAME'],
    // One value, whatever is in it.
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
