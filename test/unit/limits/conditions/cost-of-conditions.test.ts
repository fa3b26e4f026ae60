import { expect, test } from 'vitest'
import { runNode } from '../../../support/gateway/process.ts'

// In a process of its own, which prints the fastest of many rounds: what else the machine does adds to a time, and never takes away.

/** Of each table of conditions. */
type Figures = Readonly<
  Record<
    string,
    {
      readonly conditionsNs: number
      /** A thousand steps of the processor, each of which needs the one before: about a microsecond. */
      readonly stepsNs: number
    }
  >
>

test('ten conditions that a request meets cost it less than a microsecond', async () => {
  const { status, stdout, stderr } = await runNode('test/support/load/conditions-process.ts', {}, [], {})
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  const figures = JSON.parse(stdout) as Figures
  expect(Object.keys(figures)).toEqual(['browser', 'api', 'headers', 'cookies', 'parameters'])
  for (const { conditionsNs, stepsNs } of Object.values(figures))
    expect(conditionsNs, stdout).toBeLessThan(Math.max(1000, stepsNs))
}, 300_000)
