import { familyOf, readCpuTime, type CpuTime } from './process-usage.ts'
import type { Sample } from '../report/results.ts'
import type { Scenario } from '../scenarios.ts'
import type { Stage } from './stage.ts'
import type { Subject } from '../subjects/subject.ts'
import { validateAfter, validateBefore } from './validate.ts'
import { load, warmUp } from './load.ts'

export type Timing = {
  readonly seconds: number
  /** Answered before anything is timed, while Node compiles what it runs. */
  readonly warmupRequests: number
  readonly connections: number
}

/**
 * One round: starts the subject, checks that it does its work, warms it up, and times it under as much load as it takes.
 * A fresh process for each round, so that the median is over several, and not over one that was lucky in how its code
 * was laid out and compiled.
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
