import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { freePort } from '../../support/network/ports.ts'

async function occupy(port: number): Promise<Server> {
  const server = createServer().listen(port)
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  return server
}

test('a port is found after a hundred that another run has in a row', async () => {
  const first = await freePort()
  const taken = new Set<number>()
  for (let port = first; port < first + 100; port++)
    await occupy(port).then(
      () => taken.add(port),
      () => undefined,
    )
  const found = await freePort()
  expect(taken.size).toBeGreaterThan(50)
  expect(taken).not.toContain(found)
  await occupy(found)
})

test('ports come in order, so that who let go of one finds it free for long', async () => {
  const ports = []
  for (let drawn = 0; drawn < 50; drawn++) ports.push(await freePort())
  expect(new Set(ports).size).toBe(50)
})
