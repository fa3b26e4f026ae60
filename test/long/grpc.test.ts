import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { startGateway } from '../support/gateway/gateway.ts'
import { connectGrpc, startGrpcServer } from '../support/http/grpc.ts'
import { readResidentBytes } from '../support/load/memory-use.ts'

// The cost of many gRPC calls, and of clients that do not read, for a gateway in a process of its own.

const MIB = 1024 * 1024
const STREAMS = 40
/** Options of clients that each have a connection of their own. */
const own = { 'grpc.use_local_subchannel_pool': 1 }

test('ten thousand calls on one connection are answered, over few connections to the backend', async () => {
  const server = await startGrpcServer()
  const gateway = await startGateway({ UPSTREAM_URL: `h2c://127.0.0.1:${server.port}` })
  const client = connectGrpc(gateway.port, false)
  let next = 0
  const wrong: unknown[] = []
  const ask = async (): Promise<void> => {
    while (next < 10_000) {
      const asked = `call ${next++}`
      const { message } = await client.unary(asked)
      if (message.toString() !== asked) wrong.push(asked)
    }
  }
  await Promise.all(Array.from({ length: 100 }, ask))
  expect(wrong).toEqual([])
  const metrics = await (await fetch(`http://127.0.0.1:${gateway.adminPort}/metrics`)).text()
  expect(metrics).toMatch(/^sluice_requests_total\{class="2xx"\} 10000$/m)
  expect(Number(/^sluice_table_entries\{table="upstream-connections"\} (\d+)$/m.exec(metrics)?.[1])).toBe(1)
})

test('clients that stop reading hold little memory, and others are served', async () => {
  const server = await startGrpcServer()
  const gateway = await startGateway({ UPSTREAM_URL: `h2c://127.0.0.1:${server.port}` })
  const others = connectGrpc(gateway.port, false)
  for (let i = 0; i < 500; i++) await others.unary('warm')
  // As many streams to clients that read: V8's heap and buffers grow to the size that so many streams need.
  await Promise.all(
    Array.from({ length: STREAMS }, () => connectGrpc(gateway.port, false, own).count(64, 65_536)),
  )
  const pid = gateway.process.child.pid ?? 0
  const before = readResidentBytes(pid)
  // Streams of 256 MiB each. The clients read nothing after the first message.
  const stalled = Array.from({ length: STREAMS }, () =>
    connectGrpc(gateway.port, false, own).stall(4096, 65_536),
  )
  await Promise.all(stalled.map(({ begun }) => begun))
  let most = 0
  for (let i = 0; i < 60; i++) {
    const { message } = await others.unary(`still ${i}`)
    expect(message.toString()).toBe(`still ${i}`)
    most = Math.max(most, readResidentBytes(pid))
    await sleep(50)
  }
  for (const { cancel } of stalled) cancel()
  expect((most - before) / MIB).toBeLessThan(64)
})
