import { expect, test } from 'vitest'
import { removedSettings } from '../../../proxy/config/written/removed-settings.ts'
import { variableName } from '../../../shared/settings/table.ts'
import { directoryWith, problemsOf } from '../../support/gateway/settings.ts'

test.each([...removedSettings])('the removed setting %s says what to do', (field, now) => {
  const variable = variableName(field)
  const said = `no longer a setting, ${now}`
  expect(problemsOf({ [variable]: '1' })).toEqual([`${variable}: ${said}`])
  expect(problemsOf({ [`SLUICE_${variable}`]: '1' })).toEqual([`SLUICE_${variable}: ${said}`])
  expect(problemsOf({}, directoryWith(`${field}: 1\n`))).toEqual([`sluice.yaml:1: ${field}: ${said}`])
})

test('the file of a removed secret is named', () => {
  expect(problemsOf({ REDIS_SENTINEL_PASSWORD_FILE: 'x' })).toEqual([
    'REDIS_SENTINEL_PASSWORD_FILE: no longer a setting, set it in REDIS_URL: ?sentinelPassword=PASSWORD',
  ])
})

test('a removed setting that is empty is unset', () => {
  expect(problemsOf({ MAX_STREAMS: '' })).toEqual([])
})
