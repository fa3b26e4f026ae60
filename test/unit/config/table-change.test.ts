import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { compareTables } from '../../../proxy/config/reload/table-change.ts'
import { hashTable } from '../../../proxy/config/reload/table-hash.ts'
import { reviseRules } from '../../../proxy/limits/rules/continue-rules.ts'
import { doAtOnce } from '../../../shared/steps.ts'
import { loadGatewaySettings } from '../../../proxy/config/settings.ts'
import { loadWithFile } from '../../support/gateway/settings.ts'
import { makeTemporaryDirectory } from '../../support/run/temporary-directory.ts'

const read = (requests: number) =>
  loadWithFile(`limits: [{ name: a, match: GET /a, requests: ${requests}, window: 1m }]`, {}).settings

test('a worker that has changed its table has the hash of a gateway that began with it', () => {
  const [before, next] = [read(5), read(6)]
  const rules = doAtOnce(reviseRules(before.rules, next.rules, ['a'], 7))
  expect(rules).not.toEqual(next.rules)
  expect(hashTable({ ...next, rules })).toBe(hashTable(next))
  expect(hashTable(next)).not.toBe(hashTable(before))
})

test.each(['revision', 'location'])('the hash is another with another quota of a plan named %s', (plan) => {
  const withQuota = (quota: number) =>
    loadWithFile(
      `limits: [{ name: a, match: GET /a, requests: 5, window: 1m, plan: store, plans: { ${plan}: ${quota} } }]`,
      {},
    ).settings
  expect(hashTable(withQuota(20))).not.toBe(hashTable(withQuota(10)))
})

test('the hash does not depend on the folder that files of addresses are in', () => {
  const inFolder = (folder: string) =>
    hashTable({ ...read(5), geoip: { country: { file: 'geo.mmdb', location: `${folder}/geo.mmdb` } } })
  expect(inFolder('/etc/sluice')).toBe(inFolder('/srv'))
})

test('the hash of a table is that of its JSON, so that replicas of several versions agree', () => {
  const { settings } = loadWithFile(
    `denyList: [{ ip: 192.0.2.1 }]\nrefusal: { body: no, contentType: text/plain }\nlimits: [{ name: a, match: GET /a, requests: 1, window: 1m }]`,
    {},
  )
  for (const each of [settings, read(5), { ...read(5), rateLimitingDisabled: true }]) {
    const { allowList, denyList, cors, refusals, jwt, rateLimitHeaders } = each
    const table = {
      rules: each.rateLimitingDisabled ? [] : each.rules,
      allowList,
      denyList,
      cors,
      refusals: [refusals.everyRule, ...refusals.ofRules],
      jwt,
      rateLimitHeaders,
    }
    const whole = createHash('sha256').update(JSON.stringify(table)).digest('hex').slice(0, 12)
    expect(hashTable(each)).toBe(whole)
  }
})

test.each([
  ['REDIS_URL_FILE', 'redis://sluice:next@redis', []],
  ['REDIS_URL_FILE', 'redis://sluice:first@other', ['redisUrl']],
  ['REDIS_URL', 'redis://sluice:next@redis', ['redisUrl']],
])('of the fields in %s, only another Redis needs a restart: %s', (variable, next, restart) => {
  const cwd = makeTemporaryDirectory()
  const load = (url: string) => {
    writeFileSync(join(cwd, 'url'), url)
    return loadGatewaySettings({ [variable]: variable === 'REDIS_URL' ? url : 'url' }, cwd).settings
  }
  const before = load('redis://sluice:first@redis')
  expect(doAtOnce(compareTables(before, before, load(next))).restart).toEqual(restart)
})

const own = 'routes: [{ name: api, hosts: api.test, upstream: http://api }]'
const onlyOver = `routes: [{ name: page, onlyOver: true, upstream: http://page }]
limits: [{ name: a, match: GET /a, requests: 1, window: 1m, over: { route: page } }]`
const given = 'upstream: http://app\n'

test.each([
  ['', onlyOver, true],
  ['', own, false],
  [onlyOver, own, false],
  [own, onlyOver, true],
  [given, given + own, true],
  // Adding a default backend to the file, or removing one, needs a restart.
  [own, given + own, false],
  [given + own, own, true],
])(
  'changing the file from "%s" to "%s", requests without a route go to upstream: %s',
  (from, to, expected) => {
    const [before, next] = [loadWithFile(from, {}).settings, loadWithFile(to, {}).settings]
    const { settings } = doAtOnce(compareTables(before, before, next))
    expect(settings.hasFallback).toBe(expected)
  },
)
