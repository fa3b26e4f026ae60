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

test('SIGHUP while a process loads its modules does not end it', async () => {
  // The first module that a gateway process loads by itself (`setGatewayFlags`).
  const isHungUp =
    'const load=process.getBuiltinModule;' +
    'process.getBuiltinModule=(name)=>{if(name==="cluster")process.kill(process.pid,"SIGHUP");return load(name)}'
  const NODE_OPTIONS = `--import=${encodeURI(`data:text/javascript,${isHungUp}`)}`
  const gateway = spawnGateway({ WORKERS: '2', NODE_OPTIONS })
  await gateway.waitForLine(/"msg":"listening"/)
  expect(await gateway.stop()).toBe(0)
  expect(gateway.output()).not.toContain('worker exited')
})

test('a reload of the certificate does not end a worker that has only just been started', async () => {
  // The worker that replaces another makes the primary process reload before it has run anything itself.
  const isHungUp =
    'import cluster from "node:cluster";' +
    'if(cluster.worker?.id===3){' +
    'process.kill(process.ppid,"SIGHUP");' +
    'await new Promise((resolve)=>setTimeout(resolve,1000))}'
  const NODE_OPTIONS = `--import=${encodeURI(`data:text/javascript,${isHungUp}`)}`
  const gateway = spawnGateway({ WORKERS: '2', ...tlsSettings(), NODE_OPTIONS })
  await gateway.waitForLine(/"msg":"listening"/)
  const workers = (): string[] =>
    [...gateway.output().matchAll(/"pid":(\d+),"msg":"worker listening"/g)].map(([, pid]) => String(pid))
  await eventually('both workers listen', () => expect(workers()).toHaveLength(2))
  process.kill(Number(workers()[0]), 'SIGKILL')
  await gateway.waitForLine(/"trigger":"signal".*"msg":"limits unchanged"/)
  await eventually('the other worker is back', () => expect(workers()).toHaveLength(3))
  expect(await gateway.stop()).toBe(0)
  expect(gateway.output()).toMatch(/"signal":"SIGKILL","msg":"worker exited; restarting"/)
  expect(gateway.output()).not.toMatch(/"signal":"SIGHUP"/)
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
