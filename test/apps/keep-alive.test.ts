import { setTimeout as sleep } from 'node:timers/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { send, startGateway } from '../support/gateway/gateway.ts'
import { seededRandom } from '../support/random/seeded-random.ts'
import { testSeed } from '../support/random/seed.ts'
import { startServer } from './server.ts'

// gunicorn closes idle connections after two seconds without announcing it. A POST sent at that moment is lost: it may have been served, so
// it cannot be sent again. The gateway learns the time from connections that were closed.

const POSTS = 40
const ROUNDS = 15

test('once the gateway has seen gunicorn close idle connections, no POST is lost to that', async () => {
  const upstream = await startGunicorn()
  const gateway = await startGateway({
    UPSTREAM_URL: `http://127.0.0.1:${upstream}`,
    RATE_LIMITING_DISABLED: '1',
  })
  const random = seededRandom(testSeed())
  const statuses: number[] = []
  const postAtOnce = async (): Promise<number[]> => {
    const replies = await Promise.all(
      Array.from({ length: POSTS }, () => send(gateway.port, 'POST', '/', { body: 'abc' })),
    )
    return replies.map(({ status }) => status)
  }
  expect(await postAtOnce()).toEqual(Array(POSTS).fill(200))
  // gunicorn's threads check for idle connections once a second.
  await sleep(4_000)
  for (let round = 0; round < ROUNDS; round++) {
    statuses.push(...(await postAtOnce()))
    await sleep(1_900 + random() * 1_300)
  }
  expect(statuses).toEqual(Array(ROUNDS * POSTS).fill(200))
}, 180_000)

function startGunicorn(): Promise<number> {
  const files = join(import.meta.dirname, 'servers/prefork')
  const args = (port: number): string[] => [
    ...['--bind', `127.0.0.1:${port}`, '--workers', '2', '--threads', '8', '--worker-class', 'gthread'],
    ...['--keep-alive', '2', '--chdir', files, 'sleeping_app:app'],
  ]
  return startServer('/usr/bin/gunicorn', args, {
    env: { PYTHONDONTWRITEBYTECODE: '1' },
    ready: /Booting worker/,
  })
}
