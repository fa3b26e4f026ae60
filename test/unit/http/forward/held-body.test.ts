import { PassThrough } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { HeldBody, HeldBodyMemory } from '../../../../proxy/http/forward/held-body.ts'
import type { ClientRequest } from '../../../../proxy/http/message/messages.ts'

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

function hold(memory: HeldBodyMemory, client = '192.0.2.1') {
  const stream = new PassThrough()
  const read: (Buffer | string)[] = []
  const options = { memory, client, maxBytes: 64 * 1024, guard: (step: () => void) => step() }
  const held = new HeldBody(stream as unknown as ClientRequest, options, (body) => read.push(body))
  return { stream, held, read }
}

describe('a body that is held back', () => {
  test('is read when it is whole, and taken once', async () => {
    const memory = new HeldBodyMemory()
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

  test('a body larger than the limit is not read further', async () => {
    const { stream, held, read } = hold(new HeldBodyMemory())
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
    const memory = new HeldBodyMemory()
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
    const memory = new HeldBodyMemory()
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

test('one client cannot use up the memory for all, and all together no more than there is', async () => {
  const memory = new HeldBodyMemory()
  const outcomes: string[] = []
  for (let body = 0; body < 5 * 256; body++) {
    const { stream, read } = hold(memory, `192.0.2.${Math.floor(body / 320)}`)
    stream.write(Buffer.alloc(64 * 1024))
    await turn()
    outcomes.push(read[0] === undefined ? 'held' : String(read[0]))
  }
  // A quarter of 64 MiB each: 256 bodies.
  const ofClient = [...Array<string>(256).fill('held'), ...Array<string>(64).fill('memory')]
  expect(outcomes).toEqual([...ofClient, ...ofClient, ...ofClient, ...ofClient])
  expect(memory.readUse()).toEqual({ size: 64 * 1024 * 1024, capacity: 64 * 1024 * 1024, evictions: 256 })
  const { stream, read } = hold(memory, '192.0.2.99')
  stream.write('x')
  await turn()
  expect(read).toEqual(['memory'])
})
