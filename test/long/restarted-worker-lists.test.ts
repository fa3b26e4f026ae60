import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { send, startGateway } from '../support/gateway/gateway.ts'
import { startBackend } from '../support/http/backend.ts'
import { freePort } from '../support/network/ports.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

// A worker reads lists of addresses itself. Where it starts while one has a mistake, it takes the list in force from its primary process:
// without it a denyList would refuse nobody, and without workers nobody would be served.

async function startWithList(content: string) {
  const { url } = await startBackend()
  const list = join(makeTemporaryDirectory(), 'vpn.txt')
  const file = join(makeTemporaryDirectory(), 'sluice.yaml')
  writeFileSync(list, content)
  writeFileSync(file, `denyList: [{ file: ${list} }]\nlimits: []\n`)
  // One that the system chooses is another one when all workers have exited.
  const PORT = String(await freePort())
  const gateway = await startGateway({ UPSTREAM_URL: url, CONFIG_FILE: file, WORKERS: '2', PORT })
  const listening = () =>
    [...gateway.process.output().matchAll(/"pid":(\d+).*"msg":"worker listening"/g)].map(([, pid]) =>
      Number(pid),
    )
  const refusals = () =>
    gateway.process.output().match(/list of addresses refused; keeping the one in force/g) ?? []
  const statuses = async (...from: string[]) =>
    Promise.all(from.map(async (each) => (await send(gateway.port, 'GET', '/', { from: each })).status))
  await eventually('both workers listen', () => expect(listening()).toHaveLength(2))
  return { list, gateway, listening, refusals, statuses }
}

test.each<[string, (list: string) => void]>([
  ['has a mistake', (list) => writeFileSync(list, '127.0.0.8\nexample.com\n')],
  ['is gone', (list) => rmSync(list)],
])('workers that are all restarted while a list %s serve with the list in force', async (_, spoil) => {
  const { list, gateway, listening, refusals, statuses } = await startWithList('127.0.0.7\n')
  spoil(list)
  for (const pid of listening()) process.kill(pid, 'SIGKILL')
  await eventually('both are back', () => expect(listening()).toHaveLength(4))
  for (let asked = 0; asked < 10; asked++)
    expect(await statuses('127.0.0.7', '127.0.0.8')).toEqual([403, 200])
  expect(refusals().length).toBeGreaterThanOrEqual(2)
  expect(gateway.process.output()).toContain(list)

  writeFileSync(list, '127.0.0.8\n')
  await eventually('both have the new list', async () => {
    for (let asked = 0; asked < 10; asked++)
      expect(await statuses('127.0.0.7', '127.0.0.8')).toEqual([200, 403])
  })
})

test('the list in force is the last one that could be used, and one that was reloaded', async () => {
  const { list, gateway, listening, statuses } = await startWithList('127.0.0.7\n')
  writeFileSync(list, '127.0.0.8\n2001:db8::/32\n')
  await eventually('both have the new list', async () => {
    for (let asked = 0; asked < 10; asked++)
      expect(await statuses('127.0.0.7', '127.0.0.8')).toEqual([200, 403])
  })
  await gateway.process.waitForLine(/"entries":2,"msg":"list of addresses reloaded"/)
  writeFileSync(list, 'nobody\n')
  for (const pid of listening()) process.kill(pid, 'SIGKILL')
  await eventually('both are back', () => expect(listening()).toHaveLength(4))
  for (let asked = 0; asked < 10; asked++)
    expect(await statuses('127.0.0.7', '127.0.0.8')).toEqual([200, 403])
})
