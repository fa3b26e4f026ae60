import { expect, test } from 'vitest'
import { flags } from '../../../../proxy/http/http2/frames.ts'
import { HeaderBlock } from '../../../../proxy/http/http2/header-block.ts'
import { collectGarbage } from '../../../../shared/v8-gc.ts'

test('a header block in pieces of a byte takes little more memory than its bytes', () => {
  const blocks: HeaderBlock[] = []
  const before = memoryUse()
  for (let i = 0; i < 20; i++) {
    const block = new HeaderBlock(16 * 1024)
    block.begin(1, flags.endStream, Buffer.of(0))
    for (let at = 1; at < 60_000; at++) block.add(Buffer.of(at & 0xff))
    blocks.push(block)
  }
  expect(memoryUse() - before).toBeLessThan(20 * 256 * 1024)
  for (const block of blocks) {
    const whole = block.take()
    expect(whole).toHaveLength(60_000)
    expect(whole.equals(Buffer.from(Array.from(whole, (_, at) => at & 0xff)))).toBe(true)
  }
})

function memoryUse(): number {
  collectGarbage()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

test('a header block of one frame is not copied', () => {
  const block = new HeaderBlock(16 * 1024)
  const payload = Buffer.from('abc')
  block.begin(1, flags.endHeaders, payload)
  expect(block.take().buffer).toBe(payload.buffer)
})
