import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { send, spawnGateway } from '../support/gateway/gateway.ts'
import { tlsSettings } from '../support/network/certificates.ts'
import { eventually } from '../support/wait/eventually.ts'

/** The ids of a process's child processes. */
function childrenOf(pid: number | undefined): number[] {
  return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
  )
}

test('a gateway starts although a worker is killed before it listens', async () => {
  const gateway = spawnGateway({ WORKERS: '2' })
  const killed = await eventually('a worker is forked', () => {
    const [first] = childrenOf(gateway.child.pid)
    if (first === undefined) throw new Error('no worker yet')
    return first
  })
  process.kill(killed, 'SIGKILL')
  const [line] = await gateway.waitForLine(/^.*"msg":"listening".*$/)
  // A worker may log this after the primary process does.
  await eventually('both workers say so', () =>
    expect(gateway.output().match(/"msg":"worker listening"/g)).toHaveLength(2),
  )
  expect(gateway.output()).toMatch(`"worker":${killed},"code":null,"signal":"SIGKILL"`)
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
