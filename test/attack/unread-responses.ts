import { parseArgs } from 'node:util'
import { keepCrowd } from './crowd.ts'
import { seededRandom } from '../support/random/seeded-random.ts'
import { testSeed } from '../support/random/seed.ts'

const random = seededRandom(testSeed())

// HTTP/1.1 clients that ask for much and read nothing of it. After a while they go, and ask again: unread responses show
// nobody that its connection has been broken off.

const { values } = parseArgs({
  strict: false,
  options: {
    path: { type: 'string', default: '/' },
    /** They stay for so many seconds, or up to half as long again. */
    patience: { type: 'string', default: '25' },
  },
})
const patienceMs = Number(values.patience) * 1_000

keepCrowd(
  (socket) => {
    socket.write(`GET ${String(values.path)} HTTP/1.1\r\nHost: a\r\n\r\n`)
    setTimeout(() => socket.resetAndDestroy(), patienceMs * (1 + random() / 2))
  },
  undefined,
  { paused: true },
)
