import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { presetNames, readPreset } from '../../../proxy/config/presets.ts'
import { loadGatewaySettings } from '../../../proxy/config/settings.ts'
import { rewriteLimits } from '../../../proxy/config/written/rewritten-limits.ts'
import { writeConfigFile } from '../../support/run/temporary-directory.ts'

function rulesOf(yaml: string) {
  return load(yaml).settings.rules
}

function load(yaml: string) {
  const needsSecret = /account-shield/.test(yaml)
  const env = { CONFIG_FILE: writeConfigFile(yaml), ...(needsSecret && { DEVICE_SECRET: 'x'.repeat(40) }) }
  return loadGatewaySettings(env, '/')
}

test('there is a file for each preset, and no other', () => {
  const files = readdirSync(join(import.meta.dirname, '../../../presets'))
  expect(files.toSorted()).toEqual(presetNames.map((name) => `${name}.yaml`))
})

describe.each(presetNames)('%s', (name) => {
  test('a preset is valid, and causes no warning', () => {
    const { settings, warnings } = load(`preset: ${name}`)
    expect(settings.rules.map(({ policy }) => policy.name)).toEqual(
      readPreset(name).rules.map((rule) => rule.name),
    )
    expect(warnings).toEqual([])
  })

  test('a preset says of each rule where its figure comes from', () => {
    for (const { source } of readPreset(name).rules) expect(source).toMatch(/^.{15,200}$/)
  })
})

test('no two presets have a rule of the same name, so that all can stand together', () => {
  const names = rulesOf(`preset: [${presetNames.join(', ')}]`).map(({ policy }) => policy.name)
  expect(new Set(names).size).toBe(names.length)
  expect(names).toHaveLength(presetNames.flatMap((name) => readPreset(name).rules).length)
})

const extended = `
preset: wordpress
limits:
  - { name: own, match: GET /own, requests: 1, window: 1m }
  - { name: wordpress-xmlrpc, match: '* /xmlrpc.php', requests: 1, window: 1h }
`

test('own rules come first, and replace those of the same name', () => {
  const names = rulesOf(extended).map(({ policy }) => policy.name)
  expect(names.slice(0, 3)).toEqual(['own', 'wordpress-xmlrpc', 'wordpress-login-failures'])
  expect(names.filter((name) => name === 'wordpress-xmlrpc')).toHaveLength(1)
  expect(rulesOf(extended)[1]?.policy).toMatchObject({ quota: 1, windowMs: 3_600_000 })
})

test('a mistake in an own rule is reported with its own line', () => {
  expect(() => load(extended.replace('requests: 1,', 'requests: 0,'))).toThrow(
    /sluice\.yaml:4: rule "own", requests: got 0/,
  )
})

test('messages about a rule of a preset carry the line of preset', () => {
  // Without the rule for wrong keys, a client that invents keys is not limited.
  const own = '{ name: llm-keys, match: GET /own, requests: 1, window: 1m }'
  const { warnings } = load(`limits:\n  - ${own}\npreset: llm-gateway\n`)
  expect(warnings[0]).toContain('sluice.yaml:3: rule "llm-tokens", key: ')
})

test('suggested limits include those of the preset', () => {
  const path = writeConfigFile(extended)
  const { limits, ...others } = parse(rewriteLimits(path, new Map([['wordpress-users', 7]]))) as {
    limits: { name: string; requests: number }[]
  }
  expect(others).toEqual({})
  expect(limits.map(({ name }) => name)).toEqual(rulesOf(extended).map(({ policy }) => policy.name))
  expect(limits.find(({ name }) => name === 'wordpress-users')?.requests).toBe(7)
  // The result can be pasted in place of the preset.
  writeFileSync(path, rewriteLimits(path, new Map()))
  expect(loadGatewaySettings({ CONFIG_FILE: path }, '/').settings.rules).toEqual(rulesOf(extended))
})
