import { expect, test } from 'vitest'
import { unsupportedSettings } from '../../../proxy/config/written/unsupported-settings.ts'
import { variableName } from '../../../shared/settings/table.ts'
import { directoryWith, problemsOf } from '../../support/gateway/settings.ts'

test.each([...unsupportedSettings])(
  'the message about the unsupported setting %s says what to do',
  (field, instead) => {
    const variable = variableName(field)
    const said = `not a setting, ${instead}`
    expect(problemsOf({ [variable]: '1' })).toEqual([`${variable}: ${said}`])
    expect(problemsOf({ [`SLUICE_${variable}`]: '1' })).toEqual([`SLUICE_${variable}: ${said}`])
    expect(problemsOf({}, directoryWith(`${field}: 1\n`))).toEqual([`sluice.yaml:1: ${field}: ${said}`])
  },
)

test('the file of an unsupported secret is named', () => {
  expect(problemsOf({ REDIS_SENTINEL_PASSWORD_FILE: 'x' })).toEqual([
    'REDIS_SENTINEL_PASSWORD_FILE: not a setting, set it in REDIS_URL: ?sentinelPassword=PASSWORD',
  ])
})

test('an unsupported setting that is empty is unset', () => {
  expect(problemsOf({ TLS_CIPHERS: '' })).toEqual([])
})
