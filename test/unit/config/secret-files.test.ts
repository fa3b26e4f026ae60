import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { loadGatewaySettings } from '../../../proxy/config/settings.ts'
import { problemsOf } from '../../support/gateway/settings.ts'
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

test('mistakes, without the secret', () => {
  const cwd = makeTemporaryDirectory()
  writeFileSync(join(cwd, 'empty'), '\n')
  writeFileSync(join(cwd, 'short'), 'short')
  expect(problemsOf({ ADMIN_TOKEN_FILE: 'gone' }, cwd)).toEqual([
    'ADMIN_TOKEN_FILE: got "gone", needs a readable file of UTF-8 text (ENOENT: no such file or directory)',
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
