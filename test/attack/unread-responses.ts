import { parseArgs } from 'node:util'
import { keepCrowd } from './crowd.ts'
import { seededRandom } from '../support/random/seeded-random.ts'
import { testSeed } from '../support/random/seed.ts'

const random = seededRandom(testSeed())

// HTTP/1.1 clients that request large responses and read nothing. After a while they disconnect, and ask again: a client that does not read
// does not notice that its connection was closed.

const { values } = parseArgs({
  strict: false,
  options: {
    path: { type: 'string', default: '/' },
    /** The minimum number of seconds that a client stays. Some stay up to half as long again. */
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
