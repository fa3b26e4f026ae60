import { seededRandom } from '../../support/random/seeded-random.ts'
import { patternBytes, uploadId } from './pattern.ts'
import type { Exchange } from './plan.ts'

const maxFrameBytes = 20_000

/**
 * The bytes that a client sends through a tunnel: complete WebSocket frames with a mask of zeros, which leaves the content unchanged, and
 * with patterned content, so that the echo can be compared byte for byte.
 */
export function tunnelBytes({ id, tunnel }: Exchange): Buffer {
  if (!tunnel) return Buffer.alloc(0)
  const random = seededRandom(tunnel.delivery.seed + 2)
  const parts: Buffer[] = []
  for (let at = 0; at < tunnel.bytes;) {
    const size = Math.min(tunnel.bytes - at, 1 + Math.floor(random() * maxFrameBytes))
    parts.push(frameHead(size), patternBytes(uploadId(id), at, size))
    at += size
  }
  return Buffer.concat(parts)
}

/** RFC 6455 section 5.2: a final binary frame, masked with zeros. */
function frameHead(size: number): Buffer {
  if (size < 126) return Buffer.from([0x82, 0x80 | size, 0, 0, 0, 0])
  return Buffer.from([0x82, 0x80 | 126, size >> 8, size & 255, 0, 0, 0, 0])
}
