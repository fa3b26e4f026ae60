import fc from 'fast-check'
import { expect, test } from 'vitest'
import { TimestampQueues } from '../../../../proxy/limits/algorithms/sliding/timestamp-queues.ts'
import { runs } from '../../../support/random/runs.ts'

test('times taken out of the middle leave the others in their order', () => {
  const step = fc.oneof(
    fc.record({ push: fc.nat(2) }),
    fc.record({ shift: fc.constant(true) }),
    fc.record({ take: fc.nat(40) }),
  )
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(2), step), { maxLength: 200 }), (steps) => {
      const queues = new TimestampQueues(3, 1000)
      const model: number[][] = [[], [], []]
      let time = 0
      for (const [queue, what] of steps) {
        const times = model[queue] ?? []
        if ('push' in what) {
          time += what.push
          times.push(time)
          queues.push(queue, time)
        } else if ('shift' in what) {
          if (times.length === 0) continue
          times.shift()
          queues.shift(queue)
        } else {
          const wanted = time - what.take
          const place = times.lastIndexOf(wanted)
          expect(queues.placeOf(queue, wanted)).toBe(place)
          if (place === -1) continue
          times.splice(place, 1)
          queues.removeAt(queue, place)
        }
        expect(queues.slice(queue, 0, queues.count(queue))).toEqual(times)
      }
    }),
    { numRuns: runs(500) },
  )
})
