/** A clock that stands still but for the tasks that are due on it: a history takes no time, and is the same each time. */
export type VirtualTime = {
  readonly now: () => number
  /** At the same time those that were added first come first. */
  at(timeMs: number, task: () => void): void
  /** Does everything that is due until then, with what its promises lead to. */
  runUntil(timeMs: number): Promise<void>
}

/** More than the promises that follow one another in a decision. */
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
