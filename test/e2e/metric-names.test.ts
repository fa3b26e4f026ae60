import { expect, test } from 'vitest'
import { send, startGateway } from '../support/gateway/gateway.ts'
import { parseExposition } from '../support/metrics/prometheus.ts'

/** The rules of https://prometheus.io/docs/practices/naming/ that `promtool check metrics` checks. */
const rules: readonly [string, (name: string, type: string) => boolean][] = [
  [
    'counters, and only they, end in _total',
    (name, type) => (type === 'counter') === name.endsWith('_total'),
  ],
  ['the parts of a histogram keep their suffixes', (name) => !/_(count|sum|bucket)$/.test(name)],
  ['no colons, as they are reserved for recording rules', (name) => !name.includes(':')],
  ['no capitals', (name) => !/[A-Z]/.test(name)],
  ['no types', (name, type) => !name.split('_').some((word) => word === type)],
  [
    'no units but seconds and bytes',
    (name) => !/_(ms|us|ns|s|sec|secs|minutes|hours|days|kb|mb|b)(_|$)/.test(name),
  ],
  [
    'no multiples of units',
    (name) => !/(milli|micro|nano)seconds|(kilo|mega|giga|kibi|mebi)bytes/.test(name),
  ],
]

test.each(['1', '2'])(
  'the metrics of %s worker(s) follow the naming rules of Prometheus',
  async (workers) => {
    const gateway = await startGateway({ WORKERS: workers })
    const { types } = parseExposition((await send(gateway.adminPort, 'GET', '/metrics')).body)
    expect(types.size).toBeGreaterThan(30)
    for (const [rule, holds] of rules) {
      const broken = [...types].filter(([name, type]) => !holds(name, type)).map(([name]) => name)
      expect(broken, rule).toEqual([])
    }
  },
)
