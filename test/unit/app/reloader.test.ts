import { expect, test } from 'vitest'
import { Reloader } from '../../../proxy/app/reload/reloader.ts'
import { createLog } from '../../../shared/log.ts'
import { loadWithFile } from '../../support/gateway/settings.ts'

const rule = (requests: number): string =>
  `limits:\n  - { name: a, match: GET /a, requests: ${requests}, window: 1m }\n`

/** A file that is read while it is being written: it has no limits yet. */
test('a change of the file is not taken while the file is still written', async () => {
  const { settings } = loadWithFile(rule(5))
  let changes = 0
  let isWritten = false
  const reloader = new Reloader({
    running: settings,
    source: {
      written: settings,
      load() {
        if (!isWritten) changes += 1
        return Promise.resolve(loadWithFile(isWritten ? rule(6) : 'logLevel: info\n'))
      },
      watch: () => () => undefined,
      signature: () => String(changes),
    },
    prepare: () => Promise.resolve({ commit: () => undefined, abort: () => undefined }),
    changed: () => undefined,
    log: createLog('test', 'silent'),
  })
  await reloader.reload('file')
  expect(reloader.current()).toBe(settings)
  isWritten = true
  expect(await reloader.reload('file')).toMatchObject({ outcome: 'reloaded', changed: ['a'] })
  expect(reloader.current().rules[0]?.policy.quota).toBe(6)
})

/** The routes name the hosts that are served, so requests for others are answered 404 until the file has `upstream`. */
test('adding upstream with the default URL is a change of the routes, and so is removing it', async () => {
  const routes = `routes:\n  - { name: shop, hosts: shop.example, upstream: 'http://127.0.0.1:4000' }\n`
  const withDefault = `upstream: http://127.0.0.1:3000\n${routes}`
  const { settings } = loadWithFile(routes)
  let file = routes
  const reloader = new Reloader({
    running: settings,
    source: {
      written: settings,
      load: () => Promise.resolve(loadWithFile(file)),
      watch: () => () => undefined,
      signature: () => file,
    },
    prepare: () => Promise.resolve({ commit: () => undefined, abort: () => undefined }),
    changed: () => undefined,
    log: createLog('test', 'silent'),
  })
  for (const [text, hasFallback] of [
    [withDefault, true],
    [routes, false],
  ] as const) {
    expect(reloader.current().hasFallback).toBe(!hasFallback)
    file = text
    expect(await reloader.reload('api')).toMatchObject({ outcome: 'reloaded', restart: [] })
    expect(reloader.current().hasFallback).toBe(hasFallback)
    expect(await reloader.reload('api')).toMatchObject({ outcome: 'unchanged' })
  }
})
