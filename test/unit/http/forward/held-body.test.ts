import { PassThrough } from 'node:stream'
import { describe, expect, test } from 'vitest'
import type { BodyMemory } from '../../../../proxy/http/forward/body/body-memory.ts'
import { createHeldBodyMemory, HeldBody } from '../../../../proxy/http/forward/body/held-body.ts'
import type { ClientRequest } from '../../../../proxy/http/message/client-request.ts'

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

function hold(memory: BodyMemory, client = '192.0.2.1') {
  const stream = new PassThrough()
  const read: (Buffer | string)[] = []
  const options = { memory, client, maxBytes: 64 * 1024, guard: (step: () => void) => step() }
  const held = new HeldBody(stream as unknown as ClientRequest, options, (body) => read.push(body))
  return { stream, held, read }
}

describe('a body that is held back', () => {
  test('a body that is held back is read once it is complete, and can be taken once', async () => {
    const memory = createHeldBodyMemory()
    const { stream, held, read } = hold(memory)
    stream.write('{"a"')
    await turn()
    expect(read).toEqual([])
    stream.end(':1}')
    await turn()
    expect(read.map(String)).toEqual(['{"a":1}'])
    expect(memory.readUse().size).toBe(1024)
    const { bytes, isWhole } = held.take()
    expect([bytes.toString(), isWhole]).toEqual(['{"a":1}', true])
    held.drop()
    expect(memory.readUse()).toMatchObject({ size: 0, evictions: 0 })
  })

  test('the only piece of a body is counted with the memory that it keeps, and copied if that is much', async () => {
    const keptBytes = async (read: number, body: number): Promise<number> => {
      const memory = createHeldBodyMemory()
      const { stream, read: bodies } = hold(memory)
      Object.assign(stream, { complete: true, bufferedBytes: 0 })
      stream.end(Buffer.from(new ArrayBuffer(read), read - body))
      await turn()
      expect(bodies).toEqual([Buffer.alloc(body)])
      return memory.readUse().size
    }
    expect(await keptBytes(65_536, 60_000)).toBe(65_536)
    expect(await keptBytes(65_536, 100)).toBe(100)
    expect(await keptBytes(400, 100)).toBe(400)
  })

  test('the only pieces of many bodies cannot use up the memory for all', async () => {
    const memory = createHeldBodyMemory()
    const answers: string[] = []
    for (let i = 0; i < 300; i++) {
      const { stream, read } = hold(memory)
      Object.assign(stream, { complete: true, bufferedBytes: 0 })
      stream.end(Buffer.from(new ArrayBuffer(65_536)))
      await turn()
      answers.push(typeof read[0] === 'string' ? read[0] : 'held')
    }
    expect(answers.slice(0, 256)).toEqual(Array.from({ length: 256 }, () => 'held'))
    expect(answers.slice(256)).toEqual(Array.from({ length: 44 }, () => 'memory'))
  })

  test('a body larger than the limit is not read further', async () => {
    const { stream, held, read } = hold(createHeldBodyMemory())
    stream.write(Buffer.alloc(64 * 1024))
    await turn()
    expect(read).toEqual([])
    stream.write(Buffer.alloc(1))
    await turn()
    expect(read).toEqual(['size'])
    stream.write('more')
    await turn()
    expect(held.take()).toMatchObject({ isWhole: false, bytes: Buffer.alloc(64 * 1024 + 1) })
    expect(String(stream.read())).toBe('more')
  })

  test('a held body in single bytes takes no more memory than in one piece', async () => {
    const memory = createHeldBodyMemory()
    const { stream, read } = hold(memory)
    for (let sent = 0; sent < 5000; sent++) {
      stream.write('x')
      if (sent % 50 === 0) await turn()
    }
    stream.end()
    await turn()
    expect(String(read[0])).toBe('x'.repeat(5000))
    expect(memory.readUse().size).toBe(8192)
  })

  test('a dropped body is read to its end', async () => {
    const memory = createHeldBodyMemory()
    const { stream, held, read } = hold(memory)
    stream.write('a part')
    await turn()
    held.drop()
    stream.end('the rest')
    await turn()
    expect(stream.readableEnded).toBe(true)
    expect(read).toEqual([])
    expect(memory.readUse().size).toBe(0)
  })
})

test('clients together cannot exhaust the memory for held bodies, however many they begin', async () => {
  const memory = createHeldBodyMemory()
  const fill = async (client: string): Promise<number> => {
    for (let bodies = 0; ; bodies++) {
      const { stream, read } = hold(memory, client)
      stream.write(Buffer.alloc(64 * 1024))
      await turn()
      if (read[0] === 'memory') return bodies
    }
  }
  // The first three clients get a quarter of 64 MiB each, later ones half of the rest each.
  expect(await fill('192.0.2.1')).toBe(256)
  expect(await fill('192.0.2.2')).toBe(256)
  expect(await fill('192.0.2.3')).toBe(256)
  expect(await fill('192.0.2.4')).toBe(128)
  expect(await fill('192.0.2.5')).toBe(64)
  expect(await fill('192.0.2.6')).toBe(32)
  expect(await fill('192.0.2.1')).toBe(0)
  const { stream, read } = hold(memory, '192.0.2.99')
  stream.write('x')
  await turn()
  expect(read).toEqual([])
})
