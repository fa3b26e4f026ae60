import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { secretVariables } from '../../../proxy/config/written/secret-files.ts'
import { loadGatewaySettings } from '../../../proxy/config/settings.ts'
import { directoryWith, problemsOf } from '../../support/gateway/settings.ts'
import { makeTemporaryDirectory } from '../../support/run/temporary-directory.ts'

const token = 'a-token-of-16-or-more'

test('secrets come from files, by absolute and by relative paths', () => {
  const cwd = makeTemporaryDirectory()
  writeFileSync(join(cwd, 'token'), `${token}\n`)
  writeFileSync(join(cwd, 'redis'), 'redis://:secret@127.0.0.1:6379')
  const env = {
    ADMIN_TOKEN_FILE: 'token',
    REDIS_URL_FILE: join(cwd, 'redis'),
    WEBHOOK_SECRET_FILE: '',
  }
  const { settings } = loadGatewaySettings(env, cwd)
  expect(settings).toMatchObject({ adminToken: token, redisUrl: 'redis://:secret@127.0.0.1:6379' })
})

test('mistakes in secret files are reported without the secret', () => {
  const cwd = makeTemporaryDirectory()
  writeFileSync(join(cwd, 'empty'), '\n')
  writeFileSync(join(cwd, 'short'), 'short')
  expect(problemsOf({ ADMIN_TOKEN_FILE: 'gone' }, cwd)).toEqual([
    'ADMIN_TOKEN_FILE: got a value that is not shown, needs a readable file of UTF-8 text (ENOENT: no such file or directory)',
  ])
  expect(problemsOf({ ADMIN_TOKEN_FILE: 'empty' }, cwd)).toEqual([
    'ADMIN_TOKEN_FILE: got "empty", the file is empty',
  ])
  expect(problemsOf({ ADMIN_TOKEN_FILE: 'short', ADMIN_TOKEN: token }, cwd)).toEqual([
    'ADMIN_TOKEN_FILE: the same setting as ADMIN_TOKEN, keep one of them',
  ])
  const [problem, ...others] = problemsOf({ ADMIN_TOKEN_FILE: 'short' }, cwd)
  expect(others).toEqual([])
  expect(problem).toMatch(/^ADMIN_TOKEN: /)
  expect(problem).not.toContain('short')
})

// People paste the secret itself where the path of its file belongs.
const PASTED = [
  'hunter2-and-more',
  'redis://:hunter2@host:6379',
  'a+b/hunter2==',
  '/hunter2',
  '-----BEGIN PRIVATE KEY-----\nhunter2\n',
]

test.each([
  ...secretVariables.map((variable) => `${variable}_FILE`),
  'TLS_KEY_FILE',
  'crowdsec.keyFile',
  'jwt.secretFile',
  'jwt',
  'crowdsec',
])('a secret in place of a path: %s', (name) => {
  const file = (text: string): string =>
    ({
      'crowdsec.keyFile': `crowdsec: { url: http://127.0.0.1:8000, keyFile: ${text} }`,
      'jwt.secretFile': `jwt: { secretFile: ${text} }`,
      jwt: `jwt: ${text}`,
      crowdsec: `crowdsec: ${text}`,
    })[name] ?? ''
  for (const pasted of PASTED) {
    const cwd = directoryWith(`${file(JSON.stringify(pasted))}\nlimits: []\n`)
    const problems = problemsOf(
      { TLS_CERT_FILE: name === 'TLS_KEY_FILE' ? 'sluice.yaml' : '', [name]: pasted },
      cwd,
    )
    expect(problems.length).toBeGreaterThan(0)
    expect(problems.join('\n')).not.toContain('hunter2')
  }
})

test('a path with a mistake is shown if its folder exists', () => {
  const cwd = makeTemporaryDirectory()
  const shown = join(cwd, 'gone')
  expect(problemsOf({ ADMIN_TOKEN_FILE: shown }, cwd)).toEqual([
    `ADMIN_TOKEN_FILE: got "${shown}", needs a readable file of UTF-8 text (ENOENT: no such file or directory)`,
  ])
})
