import { expect, test } from 'vitest'
import { createDescriber } from '../../../../../proxy/limits/store/redis/keys.ts'
import { script } from '../../../../../proxy/limits/store/redis/run-script.ts'
import { commandOf } from '../../../../../proxy/limits/store/redis/scripts/command.ts'
import { createWrittenScripts } from '../../../../../proxy/limits/store/redis/scripts/written-scripts.ts'
import { chargeAll, makePolicy } from '../../../../support/limiter/charges.ts'

const readsArguments = script('return ARGV[1]')

test('Redis gets a hundred scripts with values written in them, and reads other values from arguments', () => {
  const scriptOf = createWrittenScripts((values) => `return ${values}`, readsArguments)
  const scripts = Array.from({ length: 101 }, (_, i) => scriptOf(String(i)))
  expect(new Set(scripts).size).toBe(101)
  expect(scripts[99]?.source).toBe('return 99')
  expect(scripts[100]).toBe(readsArguments)
  expect(scriptOf('101')).toBe(readsArguments)
  expect(scriptOf('0')).toBe(scripts[0])
})

test('requests of one fixed window are sent without arguments, those of two with the quota and the window of each', () => {
  const [minute, hour] = [makePolicy('minute', 7, 60_000), makePolicy('hour', 70, 3_600_000)]
  const describe = createDescriber('sluice:1')
  const argumentsFor = (...policies: (typeof minute)[]): readonly string[] =>
    commandOf(
      policies.map((policy) => chargeAll('client', [policy])),
      describe,
      () => '',
    ).args
  expect(argumentsFor(minute, minute)).toEqual([])
  expect(argumentsFor(minute, minute, hour)).toEqual(['2', '7', '60000', '1', '70', '3600000'])
})

test('requests of the same two fixed windows are sent without arguments, others beside them with all numbers', () => {
  const minute = makePolicy('minute', 7, 60_000)
  const hour = makePolicy('hour', 70, 3_600_000, { mode: 'shadow' })
  const describe = createDescriber('sluice:1')
  const sent = (...requests: (typeof minute)[][]) =>
    commandOf(
      requests.map((policies) => chargeAll('client', policies)),
      describe,
      () => '',
    )
  const { args, script } = sent([minute, hour], [minute, hour])
  expect(args).toEqual([])
  expect(sent([hour, minute]).script).not.toBe(script)
  const numbers = ['1', '2', '7', '60000', '1', '70', '3600000', '0']
  expect(sent([minute, hour], [minute]).args).toEqual([...numbers, '1', '1', '7', '60000', '1'])
})

test('requests of one fixed window with plans are sent without arguments, those of two with the plans of each', () => {
  const plans = { quotas: { free: 5, pro: 50 } }
  const [minute, hour] = [
    makePolicy('minute', 7, 60_000, { plans }),
    makePolicy('hour', 70, 3_600_000, { plans }),
  ]
  const describe = createDescriber('sluice:1')
  const sent = (...policies: (typeof minute)[]) =>
    commandOf(
      policies.map((policy) => chargeAll('client', [policy])),
      describe,
      () => '',
    )
  const { args, script } = sent(minute, minute)
  expect(args).toEqual([])
  expect(sent(hour).script).not.toBe(script)
  const texts = ' free=5 pro=50 '
  expect(sent(minute, minute, hour).args).toEqual(['2', '7', '60000', texts, '1', '70', '3600000', texts])
})
