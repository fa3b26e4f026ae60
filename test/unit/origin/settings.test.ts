import { describe, expect, test } from 'vitest'
import { loadOriginSettings } from '../../../origin/settings.ts'
import { SettingsError } from '../../../shared/settings/settings-error.ts'

function problemsOf(env: Record<string, string>): readonly string[] {
  try {
    loadOriginSettings(env)
    return []
  } catch (error) {
    if (error instanceof SettingsError) return error.problems
    throw error
  }
}

describe('settings of the origin', () => {
  test('defaults', () => {
    expect(loadOriginSettings({ ORIGIN_HOST: '' })).toStrictEqual({
      settings: {
        originHost: '127.0.0.1',
        originPort: 3000,
        originDb: 'data/origin.db',
        originPublicUrl: undefined,
        originPublished: undefined,
        logLevel: 'info',
      },
      warnings: [],
    })
  })

  test('each variable sets its setting, and those of the gateway none', () => {
    const { settings } = loadOriginSettings({
      ORIGIN_HOST: '0.0.0.0',
      ORIGIN_PORT: '0',
      ORIGIN_DB: '/data/keys.db',
      ORIGIN_PUBLIC_URL: 'https://api.example/',
      ORIGIN_PUBLISHED: '8080',
      LOG_LEVEL: 'debug',
      PORT: 'x',
    })
    expect(settings).toStrictEqual({
      originHost: '0.0.0.0',
      originPort: 0,
      originDb: '/data/keys.db',
      originPublicUrl: 'https://api.example',
      originPublished: 'http://localhost:8080',
      logLevel: 'debug',
    })
  })

  // All forms that compose accepts before the container's port; compose itself refuses the rest.
  test.each([
    ['8080', 'http://localhost:8080'],
    ['127.0.0.1:8080', 'http://localhost:8080'],
    ['0.0.0.0:8080', 'http://localhost:8080'],
    ['192.0.2.7:80', 'http://192.0.2.7:80'],
    ['[::1]:8080', 'http://localhost:8080'],
    ['::1:8080', 'http://localhost:8080'],
    ['[2001:db8::7]:8080', 'http://[2001:db8::7]:8080'],
    ['2001:db8::7:8080', 'http://[2001:db8::7]:8080'],
    ['8080-8090', 'http://localhost:8080'],
    ['127.0.0.1:', undefined],
    ['99999', undefined],
    ['a b:80', undefined],
    ['x', undefined],
  ])('published at %s: the curl line has %s, and the start goes on', (published, url) => {
    expect(loadOriginSettings({ ORIGIN_PUBLISHED: published }).settings.originPublished).toBe(url)
  })

  test('all mistakes are reported at once', () => {
    const env = {
      ORIGIN_HOST: '[::]',
      ORIGIN_PORT: 'tcp://10.0.0.1:3000',
      ORIGIN_PUBLIC_URL: 'api',
      LOG_LEVEL: 'x',
    }
    expect(problemsOf(env)).toEqual([
      'ORIGIN_HOST: got "[::]", needs an IP address or a host name, without a port and without brackets',
      'ORIGIN_PORT: got "tcp://10.0.0.1:3000", needs a whole number from 0 to 65535',
      'ORIGIN_PUBLIC_URL: got "api", needs http://HOST[:PORT][/PREFIX] or https://HOST[:PORT][/PREFIX], without user, query and fragment',
      'LOG_LEVEL: got "x", needs one of trace, debug, info, warn, error, fatal, silent',
    ])
  })
})
