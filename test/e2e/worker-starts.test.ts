import { expect, test } from 'vitest'
import { send, spawnGateway } from '../support/gateway/gateway.ts'
import { tlsSettings } from '../support/network/certificates.ts'
import { eventually } from '../support/wait/eventually.ts'

test('a gateway starts although a worker is killed before it listens', async () => {
  const killsFirst =
    'data:text/javascript,import cluster from "node:cluster";cluster.worker?.id===1&&process.kill(process.pid,"SIGKILL")'
  const gateway = spawnGateway({ WORKERS: '2', NODE_OPTIONS: `--import=${encodeURI(killsFirst)}` })
  const [line] = await gateway.waitForLine(/^.*"msg":"listening".*$/)
  // A worker may log this after the primary process does.
  await eventually('both workers say so', () =>
    expect(gateway.output().match(/"msg":"worker listening"/g)).toHaveLength(2),
  )
  const [, killed] = /"worker":(\d+),"code":null,"signal":"SIGKILL"/.exec(gateway.output()) ?? []
  expect(killed).toBeDefined()
  expect(gateway.output()).not.toMatch(new RegExp(`"pid":${killed},.*"worker listening"`))
  const { port } = JSON.parse(line) as { port: number }
  expect((await send(port, 'GET', '/')).status).toBe(502)
  expect(await gateway.stop()).toBe(0)
})

test('one of several workers warns of an expired certificate, and its replacement does too', async () => {
  const inACentury = 'data:text/javascript,Date.now=(now=>()=>now()+4e12)(Date.now)'
  const gateway = spawnGateway({ WORKERS: '3', ...tlsSettings(), NODE_OPTIONS: `--import=${inACentury}` })
  await gateway.waitForLine(/"msg":"listening"/)
  const warnings = (): string[] =>
    [...gateway.output().matchAll(/"pid":(\d+),.*TLS certificate has expired/g)].map(([, pid]) => String(pid))
  expect(warnings()).toHaveLength(1)
  process.kill(Number(warnings()[0]), 'SIGKILL')
  await eventually('the one that warns is back', () => expect(warnings()).toHaveLength(2))
  expect(await gateway.stop()).toBe(0)
})
