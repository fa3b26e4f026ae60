import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { NodeBreakers } from '../../../../../proxy/limits/store/outage/node-breakers.ts'
import { NodeLog } from '../../../../../proxy/limits/store/redis/node-log.ts'
import { recordLog } from '../../../../support/limiter/recordings.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function start() {
  const { log, lines } = recordLog()
  const nodeLog = new NodeLog(log)
  const told = () =>
    lines.map(({ msg, ...line }) => [
      msg,
      'node' in line ? line.node : undefined,
      'otherNodes' in line ? line.otherNodes : 0,
    ])
  return {
    nodeLog,
    told,
    write: (node: string) => nodeLog.write('warn', 'lost', { node, fields: { reason: 'x' } }),
  }
}

test('64 nodes that are lost at once are two lines, the second with their number', () => {
  const { write, told } = start()
  for (let node = 0; node < 64; node++) write(`n${node}`)
  expect(told()).toEqual([['lost', 'n0', 0]])
  vi.advanceTimersByTime(1000)
  expect(told()).toEqual([
    ['lost', 'n0', 0],
    ['lost', 'n1', 62],
  ])
  write('n9')
  expect(told()).toHaveLength(3)
})

test('each of two nodes has its log line', () => {
  const { write, told, nodeLog } = start()
  write('a')
  write('b')
  nodeLog.flush()
  expect(told()).toEqual([
    ['lost', 'a', 0],
    ['lost', 'b', 0],
  ])
  expect(vi.getTimerCount()).toBe(0)
})

test('a single server is told of at once, each time', () => {
  const { write, told } = start()
  for (let times = 0; times < 3; times++) write('')
  expect(told()).toHaveLength(3)
})

function startBreakers() {
  const { log, lines } = recordLog()
  const nothing = (): void => undefined
  const breakers = new NodeBreakers({
    recover: () => Promise.resolve(),
    opened: nothing,
    now: () => Date.now(),
    log,
    telemetry: { breakerChanged: nothing },
  })
  const told = () => lines.map(({ msg }) => msg.replace(/.*circuit breaker (\w+).*/, '$1'))
  return { breakers, lines, told, nodes: Array.from({ length: 64 }, (_, node) => `n${node}`) }
}

test('circuit breakers of 64 nodes that open and close are two lines each, in this order', () => {
  const { breakers, nodes, lines, told } = startBreakers()
  for (const node of nodes) breakers.open(node, 'away')
  for (const node of nodes) breakers.close(node)
  breakers.stop()
  expect(told()).toEqual(['open', 'open', 'closed', 'closed'])
  expect(lines[1]).toMatchObject({ node: 'n1', otherNodes: 62, reason: 'away' })
})

test('the last line about each node says whether its circuit breaker is open', () => {
  const { breakers, lines, told } = startBreakers()
  for (const node of ['a', 'b', 'c']) breakers.open(node, 'away')
  breakers.close('c')
  breakers.open('c', 'away')
  breakers.close('b')
  breakers.stop()
  expect(told()).toEqual(['open', 'open', 'closed', 'open', 'closed'])
  expect(lines[1]).toMatchObject({ node: 'b', otherNodes: 1 })
  expect(lines.slice(2)).toMatchObject([{ node: 'c' }, { node: 'c' }, { node: 'b' }])
})

test('the refusal of a command by a node is logged after the line about its circuit breaker', () => {
  const { breakers, told } = startBreakers()
  for (const node of ['a', 'b']) breakers.open(node, 'away')
  breakers.open('b', 'NOPERM')
  expect(told()).toEqual(['open', 'open', 'Redis is connected but refuses a required command'])
  breakers.stop()
})

test('circuit breakers of many nodes that open and close in turn are few lines', () => {
  const { breakers, nodes, lines } = startBreakers()
  for (let round = 0; round < 4; round++)
    for (const node of nodes) {
      breakers.open(node, 'away')
      breakers.close(node)
    }
  for (const node of nodes.slice(0, 9)) breakers.open(node, 'away')
  vi.advanceTimersByTime(1000)
  expect(lines.length).toBeLessThanOrEqual(6)
  const lastOf = (word: string) => lines.slice(-2).find(({ msg }) => msg.includes(word))
  expect(lastOf('circuit breaker open')).toMatchObject({ otherNodes: 8 })
  expect(lastOf('circuit breaker closed')).toMatchObject({ otherNodes: 64 - 9 - 1 })
  breakers.stop()
  expect(vi.getTimerCount()).toBe(0)
})
