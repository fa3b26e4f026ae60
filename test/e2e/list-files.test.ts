import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { askEachWorker } from '../support/gateway/each-worker.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { startBackend } from '../support/http/backend.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

// Lists of addresses in files, and how a running gateway follows changes of the files.

const settings = `
allowList:
  - ip: [127.0.0.50, { file: friends.txt }]
denyList:
  - ip: 127.0.0.66
  - file: ./lists/vpn.txt
limits:
  - { name: login, match: POST /login, requests: 1, window: 10m, allowList: [{ ip: { file: testers.txt } }] }
`

type Started = HostedGateway & {
  readonly folder: string
  readonly list: string
  status(from: string, target?: string): Promise<number>
  waitUntilDenied(from: string, isDenied?: boolean): Promise<void>
}

async function start(env: Record<string, string> = {}, vpn = '127.0.0.7\n'): Promise<Started> {
  const backend = await startBackend()
  const folder = makeTemporaryDirectory()
  mkdirSync(join(folder, 'lists'))
  const list = join(folder, 'lists/vpn.txt')
  writeFileSync(list, vpn)
  writeFileSync(join(folder, 'friends.txt'), '127.0.0.51 # a friend\r\n')
  writeFileSync(join(folder, 'testers.txt'), '127.0.1.0/24 ; testers')
  const file = join(folder, 'sluice.yaml')
  writeFileSync(file, settings)
  const gateway = await startHosted({
    UPSTREAM_URL: backend.url,
    CONFIG_FILE: file,
    ACCESS_LOG: '1',
    ...env,
  })
  const status = async (from: string, target = 'GET /'): Promise<number> => {
    const [method = '', path = ''] = target.split(' ')
    return (await gateway.send(method, path, { from })).status
  }
  const processes = Number(env['WORKERS'] ?? 1)
  const waitUntilDenied = async (from: string, isDenied = true): Promise<void> => {
    await eventually(`${from} is ${isDenied ? '' : 'not '}denied`, async () => {
      // Each worker reads the file itself.
      const statuses = await askEachWorker(gateway.output, processes, () => status(from))
      return statuses.every((each) => (each === 403) === isDenied)
    })
  }
  return { ...gateway, folder, list, status, waitUntilDenied }
}

async function metrics({ adminPort }: HostedGateway): Promise<string> {
  return (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text()
}

describe.each(['one process', 'workers'])('%s', (place) => {
  let gateway: Started

  beforeAll(async () => {
    gateway = await start(place === 'workers' ? { WORKERS: '2' } : {})
  })

  const waitForLastRead = (value: number): Promise<undefined> =>
    eventually('the metric changes', async () =>
      (await metrics(gateway)).includes(
        `sluice_list_last_reload_successful{list="./lists/vpn.txt"} ${value}`,
      ),
    )

  test('files are part of denyList, allowList and the list of a rule', async () => {
    expect(await gateway.status('127.0.0.7')).toBe(403)
    expect(await gateway.status('127.0.0.66')).toBe(403)
    expect(await gateway.status('127.0.0.8')).toBe(200)
    for (const from of ['127.0.0.50', '127.0.0.51', '127.0.1.9'])
      for (let i = 0; i < 3; i++) expect(await gateway.status(from, 'POST /login'), from).toBe(200)
    expect(await gateway.status('127.0.2.9', 'POST /login')).toBe(200)
    expect(await gateway.status('127.0.2.9', 'POST /login')).toBe(429)
  })

  test('a list is read again when another file is renamed over it', async () => {
    writeFileSync(`${gateway.list}.new`, '127.0.0.9\n127.0.0.10\n')
    renameSync(`${gateway.list}.new`, gateway.list)
    await gateway.waitUntilDenied('127.0.0.9')
    await gateway.waitUntilDenied('127.0.0.7', false)
    await gateway.waitForLine(/"list":"\.\/lists\/vpn\.txt","entries":2,"msg":"list of addresses reloaded"/)
  })

  test('a list is read again when it is truncated and written in place', async () => {
    writeFileSync(gateway.list, '')
    writeFileSync(gateway.list, '127.0.0.11\n')
    await gateway.waitUntilDenied('127.0.0.11')
    await gateway.waitUntilDenied('127.0.0.9', false)
  })

  test('a bad line leaves the current list in use, and log and metrics say so until it is right', async () => {
    writeFileSync(gateway.list, '127.0.0.12\nexample.com\n')
    await gateway.waitForLine(
      /"list":"\.\/lists\/vpn\.txt","mistakes":\["\.\/lists\/vpn\.txt:2: got \\"example\.com\\", needs one IP address or CIDR.*"\].*keeping the previous one/,
    )
    await gateway.waitUntilDenied('127.0.0.11')
    await gateway.waitUntilDenied('127.0.0.12', false)
    await waitForLastRead(0)
    writeFileSync(gateway.list, '127.0.0.12\n127.0.0.13\n127.0.0.14\n')
    await gateway.waitUntilDenied('127.0.0.12')
    await waitForLastRead(1)
    await eventually('all processes have the new list', async () =>
      (await metrics(gateway)).includes('sluice_list_entries{list="./lists/vpn.txt"} 3'),
    )
  })

  test('a list that is gone or empty stays in effect, and log and metrics say so until it is back', async () => {
    writeFileSync(gateway.list, '')
    await waitForLastRead(0)
    await gateway.waitForLine(/vpn\.txt: the file is missing or empty.*keeping the previous one/)
    rmSync(gateway.list)
    expect(await gateway.status('127.0.0.12')).toBe(403)
    writeFileSync(gateway.list, '127.0.0.15\n')
    await gateway.waitUntilDenied('127.0.0.15')
    await waitForLastRead(1)
  })

  test('a table whose list is bad is refused, and the old table stays', async () => {
    const file = join(gateway.folder, 'sluice.yaml')
    writeFileSync(join(gateway.folder, 'more.txt'), '# more\n127.0.0.300\n')
    writeFileSync(file, settings.replace('denyList:\n', 'denyList:\n  - file: more.txt\n'))
    const refused = await askOperator(gateway, 'POST', '/api/reload', {})
    expect(refused).toMatchObject({
      status: 422,
      body: { mistakes: [expect.stringContaining('more.txt:2: got "127.0.0.300", needs one IP address')] },
    })
    writeFileSync(join(gateway.folder, 'more.txt'), '# more\n127.0.0.30\n')
    expect(await askOperator(gateway, 'POST', '/api/reload', {})).toMatchObject({ status: 200 })
    // The lists are read before the table takes effect, so the address is denied at once.
    expect(await gateway.status('127.0.0.30')).toBe(403)
    await gateway.waitUntilDenied('127.0.0.15')
    writeFileSync(file, settings)
    expect(await askOperator(gateway, 'POST', '/api/reload', {})).toMatchObject({ status: 200 })
    await gateway.waitUntilDenied('127.0.0.30', false)
  })
})

test('log, metrics and explain name the list, and explain the line', async () => {
  const gateway = await start({}, '# bad ones\n127.0.0.9\n\n127.0.0.0/29 # a network\n127.0.0.7\n')
  for (const from of ['127.0.0.7', '127.0.0.7', '127.0.0.66']) expect(await gateway.status(from)).toBe(403)
  const [line] = await gateway.waitForLine(/^.*"status":403.*$/)
  expect(JSON.parse(line)).toMatchObject({ list: 'deny', deniedBy: './lists/vpn.txt' })
  const text = await metrics(gateway)
  expect(text).toContain('sluice_denied_requests_total{list="./lists/vpn.txt"} 2')
  expect(text).toContain('sluice_denied_requests_total{list="denyList"} 1')
  expect(text).toContain('sluice_listed_requests_total{list="deny"} 3')
  const explain = async (ip: string): Promise<unknown> =>
    (await askOperator(gateway, 'POST', '/api/explain', { method: 'GET', target: '/', ip })).body
  expect(await explain('127.0.0.7')).toMatchObject({
    outcome: 'denied',
    status: 403,
    why: 'denyList contains the client: ./lists/vpn.txt, line 4',
  })
  expect(await explain('127.0.0.66')).toMatchObject({ why: 'denyList contains the client' })
  expect((await askOperator(gateway, 'GET', '/api/limits')).body).toMatchObject({
    limits: [{ allowList: [{ ip: [{ file: 'testers.txt' }] }] }],
  })
})

test("a list behind Kubernetes' symbolic links is read again when they are swapped", async () => {
  const gateway = await start()
  const volume = join(gateway.folder, 'lists')
  rmSync(gateway.list)
  const publish = (version: string, content: string): void => {
    mkdirSync(join(volume, version))
    writeFileSync(join(volume, version, 'vpn.txt'), content)
    symlinkSync(version, join(volume, '..data_tmp'))
    renameSync(join(volume, '..data_tmp'), join(volume, '..data'))
  }
  publish('..1', '127.0.0.20\n')
  symlinkSync('..data/vpn.txt', gateway.list)
  await gateway.waitUntilDenied('127.0.0.20')
  publish('..2', '127.0.0.21\n')
  await gateway.waitUntilDenied('127.0.0.21')
  await gateway.waitUntilDenied('127.0.0.20', false)
})
