import { expect, test } from 'vitest'
import { drawChunkedAnswers } from './draw-chunked.ts'
import { drive } from './driver.ts'
import { testSeed } from '../../support/random/seed.ts'

/*
 * Responses of 16 KiB to 1 MiB in chunks of up to 20 KiB, to fast and slow readers, over HTTP/1.1, HTTPS and HTTP/2, each followed by
 * another request. If one read contains several chunks and the end while the client is slower, the connection to the backend could easily
 * stay paused; the next request on it would then get 504. `CHUNKED_ANSWERS` sets the number of responses; `npm run test:fault` has 10,000.
 */

const seed = testSeed()
const firstBatch = Number(process.env['RANDOM_BATCH'] ?? 0)
const answers = Number(process.env['CHUNKED_ANSWERS'] ?? 120)

test(`${answers} chunked answers from seed ${seed}, and the responses after them, are complete`, async () => {
  const { faults } = await drive({
    seed,
    firstBatch,
    exchanges: 2 * answers,
    profiles: ['http, roomy', 'https, roomy', 'https, tight'],
    draw: drawChunkedAnswers,
  })
  expect(faults.join('\n')).toBe('')
}, 1_800_000)
