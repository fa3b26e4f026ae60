import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { findNearNames, locateConfigFile } from '../../../proxy/config/file/config-file.ts'
import { loadGatewaySettings } from '../../../proxy/config/settings.ts'
import { directoryWith, loadWithFile, problemsOf } from '../../support/gateway/settings.ts'
import { leastTimeSync, threadCpuUs } from '../../support/load/least-time.ts'
import { makeTemporaryDirectory } from '../../support/run/temporary-directory.ts'

const needs = 'needs a readable file of UTF-8 text, at most 1 MiB'

describe('which file is read', () => {
  test('sluice.yaml in the working directory where it is there', () => {
    const cwd = directoryWith('port: 8081\n')
    const { settings } = loadGatewaySettings({}, cwd)
    expect(settings).toMatchObject({ port: 8081, configFile: join(cwd, 'sluice.yaml') })
  })

  test('the file that CONFIG_FILE names is read, and sluice.yaml is not', () => {
    const cwd = directoryWith('adminPort: 1\nport: 8081\n')
    writeFileSync(join(cwd, 'other.yaml'), 'port: 8082\n')
    const { settings } = loadGatewaySettings({ CONFIG_FILE: 'other.yaml' }, cwd)
    expect(settings).toMatchObject({ port: 8082, adminPort: 9090, configFile: join(cwd, 'other.yaml') })
    const absolute = { CONFIG_FILE: join(cwd, 'other.yaml') }
    expect(loadGatewaySettings(absolute, '/').settings.configFile).toBe(join(cwd, 'other.yaml'))
  })

  test('CONFIG_FILE has to be there', () => {
    expect(problemsOf({ CONFIG_FILE: 'nope.yaml' })).toEqual([
      `the settings file "nope.yaml" cannot be read: ${needs} (ENOENT: no such file or directory)`,
    ])
  })

  test('a directory is not a file', () => {
    const cwd = makeTemporaryDirectory()
    mkdirSync(join(cwd, 'sluice.yaml'))
    expect(problemsOf({}, cwd)).toEqual([`sluice.yaml: ${needs} (EISDIR: illegal operation on a directory)`])
  })

  test('a link that leads nowhere is not passed over', () => {
    const cwd = makeTemporaryDirectory()
    symlinkSync('nope', join(cwd, 'sluice.yaml'))
    expect(problemsOf({}, cwd)).toEqual([`sluice.yaml: ${needs} (ENOENT: no such file or directory)`])
  })
})

describe('without CONFIG_FILE, and with a folder like /etc/sluice', () => {
  const [empty, system] = [makeTemporaryDirectory(), directoryWith('port: 8081\n')]

  test('its file is read where the working directory has none', () => {
    expect(locateConfigFile(undefined, empty, system)).toBe(join(system, 'sluice.yaml'))
    expect(locateConfigFile(undefined, directoryWith(''), system)).toBe('sluice.yaml')
    expect(locateConfigFile('other.yaml', empty, system)).toBe('other.yaml')
  })

  test('a link that leads nowhere in the working directory is not passed over', () => {
    const cwd = makeTemporaryDirectory()
    symlinkSync('nope', join(cwd, 'sluice.yaml'))
    expect(locateConfigFile(undefined, cwd, system)).toBe('sluice.yaml')
  })

  test('a file is expected there while it is empty, and in the working directory where there is no such folder', () => {
    expect(locateConfigFile(undefined, empty, empty)).toBe(join(empty, 'sluice.yaml'))
    expect(locateConfigFile(undefined, empty, join(empty, 'none'))).toBe('sluice.yaml')
  })

  test('a name there that may be a mistake is named with its path', () => {
    writeFileSync(join(system, 'sluice.yml'), '')
    expect(findNearNames(empty, system)).toEqual([join(system, 'sluice.yml')])
  })
})

describe('a name that may be a mistake', () => {
  const withFile = (name: string): string => {
    const cwd = makeTemporaryDirectory()
    writeFileSync(join(cwd, name), 'port: 8081\n')
    return cwd
  }

  test.each(['sluice.yml', 'Sluice.yml', 'sluice.json', 'slucie.yaml', '.sluice.yaml', 'sluice.yaml~'])(
    '%s is not read without a word',
    (name) => {
      const { settings, warnings } = loadGatewaySettings({}, withFile(name))
      expect(settings.port).toBe(8080)
      expect(warnings).toEqual([`${name}: ignored, the settings file must be named sluice.yaml`])
    },
  )

  test.each([
    'sluice.schema.json',
    'sluice.example.yaml',
    'package.json',
    'service.yaml',
    'docker-compose.yml',
  ])('%s does not look like a mistake', (name) =>
    expect(loadGatewaySettings({}, withFile(name)).warnings).toEqual([]),
  )

  test('beside sluice.yaml, or with CONFIG_FILE, nothing is said', () => {
    const cwd = makeTemporaryDirectory()
    writeFileSync(join(cwd, 'sluice.yml'), 'limits: []\n')
    expect(loadGatewaySettings({ CONFIG_FILE: 'sluice.yml' }, cwd).warnings).toEqual([])
    writeFileSync(join(cwd, 'sluice.yaml'), 'limits: []\n')
    expect(loadGatewaySettings({}, cwd).warnings).toEqual([])
  })
})

describe('the forms of a file', () => {
  test('1 MiB and no more', () => {
    const comment = `#${'x'.repeat(1024 * 1024 - 1)}`
    expect(problemsOf({}, directoryWith(comment))).toEqual([])
    expect(problemsOf({}, directoryWith(`${comment}x`))).toEqual([
      `sluice.yaml: ${needs} (the file is larger)`,
    ])
  })

  test('UTF-8, with or without a byte order mark', () => {
    expect(loadWithFile('\ufeffport: 8081\n').settings.port).toBe(8081)
    expect(problemsOf({}, directoryWith(Buffer.from([0x70, 0xff, 0xfe])))).toEqual([
      expect.stringMatching(/^sluice\.yaml: needs a readable file of UTF-8 text, at most 1 MiB \(.+\)$/),
    ])
  })

  test('JSON, and lines that end as on Windows', () => {
    expect(loadWithFile('{"port": 8081, "limits": []}').settings).toMatchObject({ port: 8081, rules: [] })
    expect(problemsOf({}, directoryWith('port: 8081\r\nadminPort: x\r\n'))).toEqual([
      'sluice.yaml:2: adminPort: got "x", needs a whole number from 0 to 65535',
    ])
  })

  test('empty, or nothing but comments', () => {
    for (const text of ['', '\n', '# port: 80\n', '---\n', '--- {}\n']) {
      const { settings, warnings } = loadWithFile(text)
      expect(settings).toMatchObject({ port: 8080, rules: { length: 6 } })
      expect(warnings).toEqual(['sluice.yaml: is empty, the built-in table of limits applies'])
    }
  })

  test('without limits: the built-in table, with a warning unless no table applies', () => {
    const cwd = directoryWith('port: 8081\n')
    const warning = 'sluice.yaml: has no limits, the built-in table of limits applies'
    expect(loadGatewaySettings({}, cwd).warnings).toEqual([warning])
    expect(loadGatewaySettings({ RATE_LIMITING_DISABLED: '1' }, cwd).warnings).not.toContain(warning)
    expect(loadWithFile('limits: []\n').warnings).toEqual([])
  })

  test('10,000 rules are read quickly', { timeout: 120_000 }, () => {
    const rules = Array.from(
      { length: 10_000 },
      (_, i) => `- {name: r${i}, match: GET /p${i}, requests: 1, window: 1m}`,
    )
    const read = (): void =>
      expect(loadWithFile(`limits:\n${rules.join('\n')}\n`).settings.rules).toHaveLength(10_000)
    expect(leastTimeSync(10_000_000, () => threadCpuUs(read))).toBeLessThan(10_000_000)
  })
})
