import { writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { askEachWorker } from '../support/gateway/each-worker.ts'
import { startHosted } from '../support/gateway/hosted-gateway.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

const table = (requests: number | string): string =>
  `limits: [{ name: a, match: GET /a, requests: ${requests}, window: 10m }]\n`

test('a worker that is restarted gets the current table, whatever the file says', async () => {
  const backend = await startBackend()
  const file = writeConfigFile(table(5))
  const gateway = await startHosted({ UPSTREAM_URL: backend.url, CONFIG_FILE: file, WORKERS: '2' })
  const reload = () => askOperator(gateway, 'POST', '/api/reload', {})
  const left = (): Promise<(string | undefined)[]> =>
    askEachWorker(gateway.output, 2, async () => {
      const { headers } = await gateway.send('GET', '/a')
      return /r=(\d+)/.exec(String(headers['ratelimit']))?.[1]
    })
  writeFileSync(file, table(100))
  expect((await reload()).status).toBe(200)
  writeFileSync(file, table('none'))
  const workers = [...gateway.output().matchAll(/"pid":(\d+).*"msg":"worker listening"/g)].map(([, pid]) =>
    Number(pid),
  )
  expect(workers).toHaveLength(2)
  for (const [at, pid] of workers.entries()) {
    process.kill(pid, 'SIGKILL')
    await eventually('the worker listens', () =>
      expect(gateway.output().match(/worker listening/g)).toHaveLength(3 + at),
    )
  }
  expect(await left()).toEqual(['99', '98'])
  writeFileSync(file, table(50))
  expect((await reload()).body).toMatchObject({ changed: ['a'] })
  expect(await left()).toEqual(['47', '46'])
})
