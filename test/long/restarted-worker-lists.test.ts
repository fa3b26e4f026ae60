import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { send, startGateway } from '../support/gateway/gateway.ts'
import { startBackend } from '../support/http/backend.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

// A worker that exits while a list of addresses has a mistake does not come back without the list, which may be a denyList.

test('while a list is bad, a restarted worker says which line it is, and the others serve with the list in force', async () => {
  const { url } = await startBackend()
  const list = join(makeTemporaryDirectory(), 'vpn.txt')
  const file = join(makeTemporaryDirectory(), 'sluice.yaml')
  writeFileSync(list, '127.0.0.7\n')
  writeFileSync(file, `denyList: [{ file: ${list} }]\nlimits: []\n`)
  const gateway = await startGateway({ UPSTREAM_URL: url, CONFIG_FILE: file, WORKERS: '2' })
  const listening = () => [...gateway.process.output().matchAll(/"pid":(\d+).*"msg":"worker listening"/g)]
  const statuses = async () => {
    const from = ['127.0.0.7', '127.0.0.8']
    return Promise.all(
      from.map(async (each) => (await send(gateway.port, 'GET', '/', { from: each })).status),
    )
  }
  const mistake = `${list}:2: got "example.com", needs one IP address or CIDR, or a comment after #`

  writeFileSync(list, '127.0.0.8\nexample.com\n')
  await gateway.process.waitForLine(/list of addresses refused; keeping the one in force/)
  process.kill(Number(listening()[0]?.[1]), 'SIGKILL')
  await gateway.process.waitForLine(/"signal":"SIGKILL","msg":"worker exited; restarting"/)
  await eventually('the worker that was restarted has said why it cannot start', () => {
    const lines = gateway.process.stderr().split('\n')
    expect(lines.filter((line) => line === mistake).length).toBeGreaterThanOrEqual(2)
  })
  expect(listening()).toHaveLength(2)
  for (let asked = 0; asked < 10; asked++) expect(await statuses()).toEqual([403, 200])

  writeFileSync(list, '127.0.0.8\n')
  await eventually('the worker is back', () => expect(listening()).toHaveLength(3))
  await eventually('both have the new list', async () => {
    for (let asked = 0; asked < 10; asked++) expect(await statuses()).toEqual([200, 403])
  })
})
