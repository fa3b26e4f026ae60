import fc from 'fast-check'
import { expect, test } from 'vitest'
import { TimestampQueues } from '../../../../proxy/limits/algorithms/sliding/timestamp-queues.ts'
import { runs } from '../../../support/random/runs.ts'

/** More than the steps push. */
const CAPACITY = 2000

test('times taken out of the middle leave the others in their order', () => {
  const step = fc.oneof(
    fc.record({ push: fc.nat(2), units: fc.integer({ min: 1, max: 9 }) }),
    fc.record({ shift: fc.constant(true) }),
    fc.record({ take: fc.nat(40), units: fc.integer({ min: 1, max: 9 }) }),
  )
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(2), step), { maxLength: 200 }), (steps) => {
      const queues = new TimestampQueues(3, CAPACITY)
      const model: number[][] = [[], [], []]
      let time = 0
      for (const [queue, what] of steps) {
        const times = model[queue] ?? []
        if ('push' in what) {
          time += what.push
          for (let unit = 0; unit < what.units; unit++) {
            times.push(time)
            queues.push(queue, time)
          }
        } else if ('shift' in what) {
          if (times.length === 0) continue
          times.shift()
          queues.shift(queue)
        } else {
          const wanted = time - what.take
          const { from, to } = queues.placesOf(queue, wanted)
          expect(times.slice(from, to)).toEqual(times.filter((each) => each === wanted))
          const first = Math.max(from, to - what.units)
          if (first === to || to - first === times.length) continue
          times.splice(first, to - first)
          queues.removeRange(queue, first, to)
        }
        expect(queues.slice(queue, 0, queues.count(queue))).toEqual(times)
      }
      // No slot is lost, and no two queues share one.
      for (const queue of model.keys()) queues.clear(queue)
      expect(queues.size).toBe(0)
      const all = Array.from({ length: CAPACITY }, (_, i) => i)
      for (const each of all) queues.push(0, each)
      expect(queues.slice(0, 0, CAPACITY)).toEqual(all)
    }),
    { numRuns: runs(500) },
  )
})
