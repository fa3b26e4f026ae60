import fc from 'fast-check'
import { expect, test } from 'vitest'
import { FrameBoundary } from '../../../../proxy/http/forward/frame-boundary.ts'

/** A WebSocket frame with a payload of this many bytes, with its length in the shortest form or in a longer one. */
function frameOf(bytes: number, masked: boolean, longer: boolean): Buffer {
  const form = bytes > 65_535 || (longer && bytes > 125) ? 127 : bytes > 125 || longer ? 126 : bytes
  const extended = Buffer.alloc(form === 127 ? 8 : form === 126 ? 2 : 0)
  if (form === 126) extended.writeUInt16BE(bytes)
  if (form === 127) extended.writeBigUInt64BE(BigInt(bytes))
  const mask = Buffer.alloc(masked ? 4 : 0, 0x88)
  // A payload that looks like frames.
  return Buffer.concat([
    Buffer.from([0x82, form | (masked ? 0x80 : 0)]),
    extended,
    mask,
    Buffer.alloc(bytes, 0x81),
  ])
}

test('a frame boundary follows each complete frame and is nowhere between, in whatever pieces the frames pass', () => {
  const frames = fc.array(
    fc
      .record({
        bytes: fc.oneof(fc.nat(130), fc.constantFrom(65_535, 65_536, 70_000)),
        masked: fc.boolean(),
        longer: fc.boolean(),
      })
      .map(({ bytes, masked, longer }) => frameOf(bytes, masked, longer)),
    { minLength: 1, maxLength: 4 },
  )
  fc.assert(
    fc.property(frames, fc.array(fc.integer({ min: 1, max: 3_000 }), { minLength: 1 }), (all, sizes) => {
      const ends = new Set<number>([0])
      for (const frame of all) ends.add(Math.max(...ends) + frame.length)
      const bytes = Buffer.concat(all)
      const boundary = new FrameBoundary()
      for (let at = 0, piece = 0; at < bytes.length; piece++) {
        const size = sizes[piece % sizes.length] ?? 1
        boundary.pass(bytes.subarray(at, at + size))
        at = Math.min(at + size, bytes.length)
        expect(boundary.isReached, `after ${at} bytes`).toBe(ends.has(at))
      }
    }),
  )
})

test('a frame of 2^64 - 1 bytes does not end', () => {
  const boundary = new FrameBoundary()
  boundary.pass(Buffer.concat([Buffer.from([0x82, 127]), Buffer.alloc(8, 0xff), Buffer.alloc(1000)]))
  expect(boundary.isReached).toBe(false)
})
