import { expect, test } from 'vitest'
import { createProblemLog } from '../../../../../proxy/limits/store/redis/connecting/problem-log.ts'
import { recordLog } from '../../../../support/limiter/recordings.ts'

const reasons = [
  'connect ECONNREFUSED 192.0.2.1:6379',
  'certificate has expired',
  'WRONGPASS invalid password',
]

test('each reason why nodes of a cluster cannot be reached is logged at once, before the line about the connection', () => {
  const { log, lines } = recordLog()
  const problems = createProblemLog('redis', log)
  for (let times = 0; times < 2; times++)
    for (const [i, reason] of reasons.entries()) problems.logProblem(new Error(reason), `n${i}:6379`)
  problems.solved()
  expect(lines.map(({ msg, reason }) => reason ?? msg)).toEqual([...reasons, 'connected to Redis'])
  expect(lines[1]).toMatchObject({ node: 'n1:6379', msg: 'cannot connect to Redis; retrying' })
})

test('a reason that was seen at a node is logged again once the node was connected', () => {
  const { log, lines } = recordLog()
  const problems = createProblemLog('redis', log)
  const [reason] = reasons
  for (const node of ['a', 'b']) problems.logProblem(new Error(reason), node)
  problems.solvedAt('b')
  problems.logProblem(new Error(reason), 'b')
  expect(lines).toHaveLength(1)
  problems.solvedAt('a')
  problems.logProblem(new Error(reason), 'b')
  expect(lines).toHaveLength(2)
})

test('an outage whose reasons change each time is twenty lines', () => {
  const { log, lines } = recordLog()
  const problems = createProblemLog('redis', log)
  for (let i = 0; i < 100; i++) problems.logProblem(new Error(`reason ${i}`), 'a')
  expect(lines).toHaveLength(20)
})

test('nodes that cannot be reached for one reason, each at its address, leave room for other reasons', () => {
  for (const [hostOf, addressOf] of [
    [(i: number) => `192.0.2.${i}`, (i: number) => `192.0.2.${i}`],
    [(i: number) => `2001:db8::${i}`, (i: number) => `2001:db8::${i}`],
    [(i: number) => `redis-${i}.example`, (i: number) => `192.0.2.${i}`],
  ] as const) {
    const { log, lines } = recordLog()
    const problems = createProblemLog('redis', log)
    for (let i = 1; i <= 64; i++) {
      const [node, address] = [`${hostOf(i)}:6379`, `${addressOf(i)}:6379`]
      problems.logProblem(new Error(`connect ECONNREFUSED ${address}`), node)
      problems.logProblem(new Error(`getaddrinfo EAI_AGAIN ${hostOf(i)}`), node)
    }
    problems.logProblem(new Error('NOAUTH Authentication required.'), `${hostOf(1)}:6379`)
    expect(lines.map(({ reason }) => String(reason).split(' ', 2).join(' '))).toEqual([
      'connect ECONNREFUSED',
      'getaddrinfo EAI_AGAIN',
      'NOAUTH Authentication',
    ])
  }
})
