import { familyOf, readCpuTime, type CpuTime } from './process-usage.ts'
import type { Sample } from '../report/results.ts'
import type { Scenario } from '../scenarios.ts'
import type { Stage } from './stage.ts'
import type { Subject } from '../subjects/subject.ts'
import { validateAfter, validateBefore } from './validate.ts'
import { load, warmUp } from './load.ts'

export type Timing = {
  readonly seconds: number
  /** Requests answered before anything is timed, while Node compiles the code. */
  readonly warmupRequests: number
  readonly connections: number
}

/**
 * One round: starts the subject, checks that it works, warms it up, and times it under as much load as it takes. Each round uses a fresh
 * process, so that the median covers several processes instead of one that was lucky in the layout and compilation of its code.
 */
export async function measureRound(
  stage: Stage,
  scenario: Scenario,
  subject: Subject,
  timing: Timing,
): Promise<Sample> {
  const { connections } = timing
  return stage.withSubject(subject, scenario, async ({ pid, port }) => {
    const { path, protocol, script } = scenario
    const how = { port, path, protocol, script, connections }
    await validateBefore(scenario, subject, port)
    const warmup = await warmUp(how, timing.warmupRequests)

    const pids = familyOf(pid)
    const before = readCpuTime(pids)
    const redisBefore = readCpuTime([stage.redisPid])
    const timed = await load({ ...how, seconds: timing.seconds })
    const spent = since(before, readCpuTime(pids))
    const redisSpent = since(redisBefore, readCpuTime([stage.redisPid]))

    await validateAfter(scenario, subject, [...warmup, timed], stage.counters, connections)
    const { requests, requestsPerSecond } = timed
    return {
      cpuUs: (spent.userUs + spent.systemUs) / requests,
      userUs: spent.userUs / requests,
      systemUs: spent.systemUs / requests,
      redisUs: (redisSpent.userUs + redisSpent.systemUs) / requests,
      requestsPerSecond,
    }
  })
}

function since(before: CpuTime, after: CpuTime): CpuTime {
  return { userUs: after.userUs - before.userUs, systemUs: after.systemUs - before.systemUs }
}
