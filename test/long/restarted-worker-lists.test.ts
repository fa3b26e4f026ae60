import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { askEachWorker } from '../support/gateway/each-worker.ts'
import { send, startGateway } from '../support/gateway/gateway.ts'
import { writeMmdb } from '../support/geo/mmdb.ts'
import { startBackend } from '../support/http/backend.ts'
import { freePort } from '../support/network/ports.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

// A worker reads lists of addresses and GeoIP databases itself. If a file has a mistake when the worker starts, the worker gets the
// previous version from its primary process. Otherwise a denyList would refuse nobody or, if the worker did not start, nobody would be
// served.

const twice = <T>(each: T): [T, T] => [each, each]

async function startWithList(content: string) {
  const list = join(makeTemporaryDirectory(), 'vpn.txt')
  writeFileSync(list, content)
  return { list, ...(await startTwo(`denyList: [{ file: ${list} }]\nlimits: []\n`)) }
}

/** Starts a gateway with two workers. */
async function startTwo(table: string) {
  const { url } = await startBackend()
  const file = join(makeTemporaryDirectory(), 'sluice.yaml')
  writeFileSync(file, table)
  // A fixed port, as the system would choose another one once all workers have exited.
  const PORT = String(await freePort())
  const gateway = await startGateway({ UPSTREAM_URL: url, CONFIG_FILE: file, WORKERS: '2', PORT })
  const listening = () =>
    [...gateway.process.output().matchAll(/"pid":(\d+).*"msg":"worker listening"/g)].map(([, pid]) =>
      Number(pid),
    )
  const refusals = () =>
    gateway.process.output().match(/cannot use the changed list of addresses; keeping the previous one/g) ??
    []
  /** Sends a request from each address to each worker. */
  const statuses = (...from: string[]) =>
    askEachWorker(
      () => gateway.process.output(),
      2,
      () =>
        Promise.all(from.map(async (each) => (await send(gateway.port, 'GET', '/', { from: each })).status)),
    )
  await eventually('both workers listen', () => expect(listening()).toHaveLength(2))
  return { gateway, listening, refusals, statuses }
}

test.each<[string, (list: string) => void]>([
  ['has a mistake', (list) => writeFileSync(list, '127.0.0.8\nexample.com\n')],
  ['is gone', (list) => rmSync(list)],
])('workers that are all restarted while a list %s serve with the current list', async (_, spoil) => {
  const { list, gateway, listening, refusals, statuses } = await startWithList('127.0.0.7\n')
  spoil(list)
  for (const pid of listening()) process.kill(pid, 'SIGKILL')
  await eventually('both are back', () => expect(listening()).toHaveLength(4))
  expect(await statuses('127.0.0.7', '127.0.0.8')).toEqual(twice([403, 200]))
  expect(refusals().length).toBeGreaterThanOrEqual(2)
  expect(gateway.process.output()).toContain(list)

  writeFileSync(list, '127.0.0.8\n')
  await eventually('both have the new list', async () =>
    expect(await statuses('127.0.0.7', '127.0.0.8')).toEqual(twice([200, 403])),
  )
})

test('the current list is the last one that could be used, and one that was reloaded', async () => {
  const { list, gateway, listening, statuses } = await startWithList('127.0.0.7\n')
  // The primary process reloads the list by itself, without a log line, and the workers may have the new list before it does.
  await eventually(
    'workers that are restarted have the new list from their primary process',
    async () => {
      writeFileSync(list, '127.0.0.8\n2001:db8::/32\n')
      await eventually('both have the new list', async () =>
        expect(await statuses('127.0.0.7', '127.0.0.8')).toEqual(twice([200, 403])),
      )
      await gateway.process.waitForLine(/"entries":2,"msg":"list of addresses reloaded"/)
      writeFileSync(list, 'nobody\n')
      const started = listening().length
      for (const pid of listening().slice(-2)) process.kill(pid, 'SIGKILL')
      await eventually('both are back', () => expect(listening()).toHaveLength(started + 2))
      expect(await statuses('127.0.0.7', '127.0.0.8')).toEqual(twice([200, 403]))
    },
    { endMs: 120_000 },
  )
})

test.each<[string, (file: string) => void]>([
  ['is cut off', (file) => writeFileSync(file, readFileSync(file).subarray(0, 100))],
  ['is gone', (file) => rmSync(file)],
])('workers that are all restarted while a GeoIP file %s know the current countries', async (_, spoil) => {
  const country = join(makeTemporaryDirectory(), 'country.mmdb')
  const write = (code: string): void =>
    writeFileSync(country, writeMmdb({ '127.0.1.0/24': { country: { iso_code: code } } }))
  write('DE')
  const { gateway, listening, statuses } = await startTwo(`geoip: { country: ${country} }
limits: [{ name: germany, match: '* /*', when: { country: DE }, requests: 1, window: 1h }]
`)
  expect(await statuses('127.0.1.1')).toEqual([[200], [429]])
  spoil(country)
  for (const pid of listening()) process.kill(pid, 'SIGKILL')
  await eventually('both are back', () => expect(listening()).toHaveLength(4))
  expect(await statuses('127.0.1.1', '127.0.2.1')).toEqual(twice([429, 200]))
  expect(gateway.process.output()).toContain(
    'cannot use the changed geoip database; keeping the previous one',
  )

  write('FR')
  await eventually('both have the new database', async () =>
    expect(await statuses('127.0.1.1')).toEqual(twice([200])),
  )
})
