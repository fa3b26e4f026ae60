import type { Counters } from './counters.ts'
import type { DecisionOutcome } from '../telemetry.ts'

/** The activity of a process, for the operators' page: a part of the metrics that is cheap enough to read twice a second. */
export type Activity = {
  /**
   * Decisions by policy since the process started. Leaves out policies that have counted nothing, as most of thousands of policies. A list
   * of pairs, because a policy may have the name of a member that every object has.
   */
  readonly decisions: readonly (readonly [policy: string, Readonly<Record<DecisionOutcome, number>>])[]
  /** Finished requests by the first digit of the status; 0 if the client disconnected before the response. */
  readonly requests: readonly number[]
  readonly connections: number
  readonly breakerOpen: boolean
}

/** The activities of the processes that serve clients. */
export type Activities = {
  /** The last activity of each running process, so that a process that answers late does not seem to begin again from 0. */
  readonly all: readonly Activity[]
  /** The number of processes that have answered now. */
  readonly answered: number
}

/** Copies the counts since the start of this process. Leaves out policies without decisions. */
export function readActivity(counters: Counters): Activity {
  return {
    decisions: [...counters.policies.decisions]
      .filter(([, outcomes]) => outcomeNames.some((outcome) => outcomes[outcome] > 0))
      .map(([name, outcomes]) => [name, { ...outcomes }] as const),
    requests: [...counters.requests],
    connections: counters.connections,
    breakerOpen: counters.openBreakers.size > 0,
  }
}

/** Sums the activities of several processes. */
export function sumActivities(activities: readonly Activity[]): Activity {
  const decisions = new Map<string, Record<DecisionOutcome, number>>()
  const requests = [0, 0, 0, 0, 0, 0]
  for (const activity of activities) {
    for (const [name, outcomes] of activity.decisions) {
      const sum = decisions.get(name)
      if (!sum) decisions.set(name, { ...outcomes })
      else for (const outcome of outcomeNames) sum[outcome] += outcomes[outcome]
    }
    for (const [index, count] of activity.requests.entries()) requests[index] = (requests[index] ?? 0) + count
  }
  return {
    decisions: [...decisions],
    requests,
    connections: activities.reduce((sum, { connections }) => sum + connections, 0),
    breakerOpen: activities.some(({ breakerOpen }) => breakerOpen),
  }
}

const outcomeNames = ['allowed', 'refused', 'shadow', 'routed', 'local', 'open', 'unavailable'] as const
