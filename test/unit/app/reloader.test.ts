import { expect, test } from 'vitest'
import { createReloader } from '../../../proxy/app/reload/reloader.ts'
import { createLog } from '../../../shared/log.ts'
import { loadWithFile } from '../../support/gateway/settings.ts'

const rule = (requests: number): string =>
  `limits:\n  - { name: a, match: GET /a, requests: ${requests}, window: 1m }\n`

/** A file that is read while it is being written: it has no limits yet. */
test('a change of the file is not taken while the file is still written', async () => {
  const { settings } = loadWithFile(rule(5))
  let changes = 0
  let isWritten = false
  const reloader = createReloader({
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
