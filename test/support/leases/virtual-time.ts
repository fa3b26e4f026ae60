/** A clock that moves only to the next task that is due. So a history takes no real time, and is the same each time. */
export type VirtualTime = {
  readonly now: () => number
  /** Runs a task at a time. Tasks at the same time run in the order in which they were added. */
  at(timeMs: number, task: () => void): void
  /** Runs all tasks that are due until then, including the promises that they settle. */
  runUntil(timeMs: number): Promise<void>
}

/** More turns than the longest chain of promises in a decision. */
const TURNS = 4

export function createVirtualTime(): VirtualTime {
  let nowMs = 0
  const tasks: { readonly timeMs: number; readonly task: () => void }[] = []
  return {
    now: () => nowMs,
    at(timeMs, task) {
      let place = tasks.length
      while (place > 0 && (tasks[place - 1]?.timeMs ?? 0) > timeMs) place -= 1
      tasks.splice(place, 0, { timeMs: Math.max(timeMs, nowMs), task })
    },
    async runUntil(timeMs) {
      for (let next = tasks[0]; next && next.timeMs <= timeMs; next = tasks[0]) {
        tasks.shift()
        nowMs = next.timeMs
        next.task()
        for (let turn = 0; turn < TURNS; turn++) await Promise.resolve()
      }
      nowMs = timeMs
    },
  }
}
