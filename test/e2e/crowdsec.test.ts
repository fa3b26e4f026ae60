import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { askEachWorker } from '../support/gateway/each-worker.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { startBackend } from '../support/http/backend.ts'
import { startLocalApi, type LocalApi } from '../support/http/local-api.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

type Started = HostedGateway & {
  readonly keyFile: string
  status(from: string): Promise<number>
  untilStatus(from: string, status: number): Promise<unknown>
  metric(line: string): Promise<boolean>
}

async function start(api: LocalApi, env: Record<string, string> = {}, key = api.key): Promise<Started> {
  const backend = await startBackend()
  const folder = makeTemporaryDirectory()
  const keyFile = join(folder, 'crowdsec.key')
  writeFileSync(keyFile, `${key}\n`)
  const file = join(folder, 'sluice.yaml')
  writeFileSync(
    file,
    `crowdsec: { url: '${api.url}/', keyFile: crowdsec.key, every: 1s }\nallowList: [{ ip: 127.0.0.99 }]\nlimits: []\n`,
  )
  const gateway = await startHosted({ UPSTREAM_URL: backend.url, CONFIG_FILE: file, ACCESS_LOG: '1', ...env })
  const status = async (from: string): Promise<number> => (await gateway.send('GET', '/', { from })).status
  return {
    ...gateway,
    keyFile,
    status,
    untilStatus: (from, wanted) =>
      eventually(`${from} gets ${wanted}`, async () => {
        const statuses = await askEachWorker(gateway.output, Number(env['WORKERS'] ?? 1), () => status(from))
        return statuses.every((each) => each === wanted)
      }),
    async metric(line) {
      return (await (await fetch(`http://127.0.0.1:${gateway.adminPort}/metrics`)).text()).includes(line)
    },
  }
}

/** Each test begins in the state that the ones before it left. */
const inOrder = { concurrent: false }

// Concurrent, as these tests mostly wait for the next poll.
describe.concurrent.each(['one process', 'workers'])('CrowdSec and %s', (place) => {
  let api: LocalApi
  let gateway: Started

  beforeAll(async () => {
    api = await startLocalApi()
    api.add('127.0.0.2')
    api.add('127.0.1.0/24')
    api.add('2001:db8::/32')
    api.add('127.0.0.3', { type: 'captcha' })
    api.add('127.0.0.0/8', { scope: 'Country' })
    api.add('127.0.0.99')
    gateway = await start(api, place === 'workers' ? { WORKERS: '2' } : {})
  })

  test('bans of addresses and networks are in effect from the first request on', inOrder, async () => {
    for (const from of ['127.0.0.2', '127.0.1.77']) expect(await gateway.status(from), from).toBe(403)
    for (const from of ['127.0.0.1', '127.0.0.3']) expect(await gateway.status(from), from).toBe(200)
    expect(api.polls[0]).toBe('?startup=true&scopes=ip,range')
  })

  test('allowList exempts a client from them', inOrder, async () => {
    expect(await gateway.status('127.0.0.99')).toBe(200)
  })

  test('one process polls, and asks for the differences after the first time', inOrder, async () => {
    await eventually('it has polled again', () => api.polls.length >= 3)
    expect(api.polls.slice(1).every((query) => query === '?startup=false&scopes=ip,range')).toBe(true)
  })

  test('decisions that are made and lifted later are known after a poll', inOrder, async () => {
    api.add('127.0.0.4')
    await gateway.untilStatus('127.0.0.4', 403)
    api.remove('127.0.0.4')
    api.add('127.0.0.5')
    await gateway.untilStatus('127.0.0.4', 200)
    await gateway.untilStatus('127.0.0.5', 403)
  })

  test('a decision ends by its duration', inOrder, async () => {
    api.add('127.0.0.6', { forMs: 3000 })
    await gateway.untilStatus('127.0.0.6', 403)
    await gateway.untilStatus('127.0.0.6', 200)
  })

  test('decisions stay while the API fails, and are read anew when it is back', inOrder, async () => {
    api.fail(500)
    await gateway.waitForLine(/"reason":"the local API answered 500".*keeping those already loaded/)
    expect(await gateway.status('127.0.0.2')).toBe(403)
    // The API has a new database now, so no poll for changes reports that decisions are gone.
    api.forget()
    api.add('127.0.0.7')
    api.fail(undefined)
    await gateway.untilStatus('127.0.0.7', 403)
    await gateway.untilStatus('127.0.0.2', 200)
    expect(await gateway.metric('sluice_crowdsec_polls_total{outcome="failed"}')).toBe(true)
  })

  test('an answer that is truncated changes nothing, and is asked for again', inOrder, async () => {
    api.cut(true)
    await gateway.waitForLine(/"reason":"the answer is truncated.*keeping those already loaded/)
    expect(await gateway.status('127.0.0.7')).toBe(403)
    api.add('127.0.0.8')
    api.cut(false)
    await gateway.untilStatus('127.0.0.8', 403)
  })

  test('a key that is replaced is used for the next poll', inOrder, async () => {
    writeFileSync(gateway.keyFile, 'wrong')
    await gateway.waitForLine(/"reason":"the local API refused the key in .*crowdsec\.key \(403\)"/)
    writeFileSync(gateway.keyFile, api.key)
    api.add('127.0.0.10')
    await gateway.untilStatus('127.0.0.10', 403)
  })
})

test('log, metrics and explain name CrowdSec, and nothing shows the key', async () => {
  const api = await startLocalApi('s3cret-key')
  api.add('127.0.0.2')
  const gateway = await start(api)
  expect(await gateway.status('127.0.0.2')).toBe(403)
  const [line] = await gateway.waitForLine(/^.*"status":403.*$/)
  expect(JSON.parse(line)).toMatchObject({ list: 'deny', deniedBy: 'crowdsec' })
  expect(await gateway.metric('sluice_denied_requests_total{list="crowdsec"} 1')).toBe(true)
  expect(await gateway.metric('sluice_table_entries{table="crowdsec"} 1')).toBe(true)
  const { body } = await askOperator(gateway, 'POST', '/api/explain', {
    method: 'GET',
    target: '/',
    ip: '127.0.0.2',
  })
  expect(body).toMatchObject({ outcome: 'denied', status: 403, why: 'CrowdSec has banned the client' })
  // The output of `cscli bouncers add` without `-o raw`.
  writeFileSync(gateway.keyFile, `API key for 'sluice':\n\n   s3cret-key\n\nPlease keep this key.\n`)
  await gateway.waitForLine(/"reason":".*crowdsec\.key needs the API key of a bouncer in one line"/)
  expect(gateway.output()).not.toContain('s3cret-key')
})

test('a CrowdSec that is away does not keep the gateway from serving', async () => {
  const api = await startLocalApi()
  api.add('127.0.0.2')
  api.fail(503)
  const gateway = await start(api)
  expect(await gateway.status('127.0.0.2')).toBe(200)
  api.fail(undefined)
  await gateway.untilStatus('127.0.0.2', 403)
})
