import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { rewriteLimits } from '../../../proxy/config/written/rewritten-limits.ts'
import { makeTemporaryDirectory } from '../../support/run/temporary-directory.ts'

/** The rules of this file, of which the one named `login` gets another number of requests. */
function rewritten(file: string): unknown {
  const path = join(makeTemporaryDirectory(), 'sluice.yaml')
  writeFileSync(path, file)
  return parse(rewriteLimits(path, new Map([['login', 7]])), { maxAliasCount: -1 })
}

test('a rewritten table has the values of anchors that are elsewhere in the file', () => {
  const file = `
denyList: &bad [&worst 203.0.113.7]
allowList: &office [192.0.2.0/24, *worst]
limits:
  - { name: login, match: POST /login, requests: 30, window: &window 15m, allowList: *office }
  - { name: api, match: /api/*, requests: 100, window: *window, allowList: *office }
`
  const allowList = ['192.0.2.0/24', '203.0.113.7']
  expect(rewritten(file)).toEqual({
    limits: [
      { name: 'login', match: 'POST /login', requests: 7, window: '15m', allowList },
      { name: 'api', match: '/api/*', requests: 100, window: '15m', allowList },
    ],
  })
})

test('a rule whose number is an alias of that of a rewritten one keeps it', () => {
  const file = `
limits:
  - { name: login, match: POST /login, requests: &few 30, window: 15m }
  - { name: form, match: GET /login, requests: *few, window: 15m }
`
  expect(rewritten(file)).toMatchObject({ limits: [{ requests: 7 }, { name: 'form', requests: 30 }] })
})

test('a table in which each of many rules has the same alias is rewritten', () => {
  const others = Array.from(
    { length: 200 },
    (_, i) => `\n  - { name: r${i}, match: /${i}, requests: 9, window: *w }`,
  )
  const file = `limits:\n  - { name: login, match: /login, requests: 30, window: &w 15m }${others.join('')}\n`
  expect(rewritten(file)).toMatchObject({
    limits: { length: 201, 0: { requests: 7 }, 200: { window: '15m' } },
  })
})
