import { expect, test } from 'vitest'
import { createProblemLog } from '../../../../../proxy/limits/store/redis/connecting/problem-log.ts'
import { recordLog } from '../../../../support/limiter/limiters.ts'

const reasons = [
  'connect ECONNREFUSED 192.0.2.1:6379',
  'certificate has expired',
  'WRONGPASS invalid password',
]

test('each reason why nodes of a cluster cannot be reached is logged at once, before the line about the connection', () => {
  const { log, lines } = recordLog()
  const problems = createProblemLog('redis', log)
  for (let times = 0; times < 2; times++)
    for (const [i, reason] of reasons.entries()) problems.tell(new Error(reason), `n${i}:6379`)
  problems.solved()
  expect(lines.map(({ msg, reason }) => reason ?? msg)).toEqual([...reasons, 'connected to Redis'])
  expect(lines[1]).toMatchObject({ node: 'n1:6379', msg: 'cannot connect to Redis; retrying' })
})

test('a reason that was seen at a node is logged again once the node was connected', () => {
  const { log, lines } = recordLog()
  const problems = createProblemLog('redis', log)
  const [reason] = reasons
  for (const node of ['a', 'b']) problems.tell(new Error(reason), node)
  problems.solvedAt('b')
  problems.tell(new Error(reason), 'b')
  expect(lines).toHaveLength(1)
  problems.solvedAt('a')
  problems.tell(new Error(reason), 'b')
  expect(lines).toHaveLength(2)
})

test('an outage whose reasons change each time is twenty lines', () => {
  const { log, lines } = recordLog()
  const problems = createProblemLog('redis', log)
  for (let i = 0; i < 100; i++) problems.tell(new Error(`reason ${i}`), 'a')
  expect(lines).toHaveLength(20)
})
