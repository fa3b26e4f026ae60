import { expect, test } from 'vitest'
import { boundsFor } from '../../../proxy/config/bounds.ts'

const settings = { maxHeaderBytes: 16 * 1024, workers: 1 }
const MiB = 1024 * 1024

test.each([
  [64 * 1024 * MiB, 1, 192],
  [768 * MiB, 1, 192],
  [256 * MiB, 1, 64],
  [256 * MiB, 4, 16],
  [64 * MiB, 16, 8],
])(
  'with %d bytes of memory and %d workers, %d MiB of responses may be unread',
  (memory, workers, mebibytes) => {
    expect(boundsFor({ ...settings, workers }, memory).maxUnreadBytes).toBe(mebibytes * MiB)
  },
)

test('a request target may have half of the size of a head', () => {
  expect(boundsFor(settings).maxTargetBytes).toBe(8 * 1024)
  expect(boundsFor({ ...settings, maxHeaderBytes: 1024 * 1024 }).maxTargetBytes).toBe(512 * 1024)
})
