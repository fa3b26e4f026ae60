import { seededRandom } from '../../support/random/seeded-random.ts'
import type { BatchOptions } from './draw.ts'
import type { Answer, Conversation, Delivery, Exchange } from './plan.ts'

const KiB = 1_024

/**
 * Draws clients, each of which requests long responses in many chunks, and a short response after each. So the next request on a connection
 * to the backend meets anything that a long response has left behind there.
 */
export function drawChunkedAnswers(seed: number, batch: number, options: BatchOptions): Conversation[] {
  const random = seededRandom(Math.imul(seed, 2_654_435_761) + batch)
  const between = (least: number, most: number): number => least + Math.floor(random() * (most - least + 1))
  let id = batch * 4_096
  let exchanges = 0
  const conversations: Conversation[] = []
  const exchange = (answer: Partial<Answer>): Exchange => {
    exchanges++
    return { ...plainExchange, id: ++id, answer: { ...plainExchange.answer, ...answer } }
  }
  const long = (): Exchange => {
    const chunkMost = between(1, 20) * KiB
    const isWhole = random() < 0.5
    return exchange({
      framing: 'chunked',
      // Sizes are distributed evenly by magnitude, so short responses are as frequent as long ones.
      bytes: Math.floor(16 * KiB * 64 ** random()),
      chunkMost,
      trailers: random() < 0.1,
      delivery: { ...atOnce, seed: between(1, 2 ** 30), most: isWhole ? atOnce.most : chunkMost },
    })
  }
  while (exchanges < options.exchanges) {
    const isSlow = random() < 0.3
    const answers = Array.from({ length: between(1, 6) }, () => [long(), exchange({})])
    conversations.push({
      protocol: options.bounds.https ? (random() < 0.5 ? 'https' : 'h2') : 'http',
      address: `127.2.${(conversations.length >> 8) + 1}.${(conversations.length & 127) + 1}`,
      exchanges: answers.flat(),
      window: 1,
      delivery: atOnce,
      reading: {
        pauseShare: isSlow ? 0.2 : 0,
        pauseMs: between(1, 5),
        stallAfterBytes: between(0, 64 * KiB),
        stallMs: isSlow ? between(0, 40) : 0,
      },
      halfCloses: false,
      streamWindow: 65_535 * (random() < 0.5 ? 1 : 16),
    })
  }
  return conversations
}

const atOnce: Delivery = { seed: 1, most: 100_000_000, pauseShare: 0, pauseMs: 0 }

const plainExchange: Exchange = {
  id: 0,
  kind: 'forward',
  method: 'GET',
  version: '1.1',
  asksToClose: false,
  upload: undefined,
  tunnel: undefined,
  cancel: undefined,
  answer: {
    interim: [],
    status: 200,
    framing: 'length',
    bytes: 100,
    chunkMost: 1,
    trailers: false,
    early: false,
    delayMs: 0,
    delivery: atOnce,
    then: 'keep',
    broken: undefined,
    barrier: 0,
  },
}
