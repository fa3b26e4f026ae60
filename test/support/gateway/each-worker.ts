import { eventually } from '../wait/eventually.ts'

/**
 * Asks each worker of a gateway in turn. The other workers are stopped meanwhile, because any of them may accept a new connection: many
 * connections in a row may all reach the same worker.
 *
 * @param output the log of the gateway
 * @param workers how many there are; with one the gateway has no worker processes
 * @param ask sends a request over a new connection
 * @returns the answers
 */
export async function askEachWorker<Answer>(
  output: () => string,
  workers: number,
  ask: () => Promise<Answer>,
): Promise<Answer[]> {
  if (workers === 1) return [await ask()]
  const pids = await eventually('all workers listen', () => {
    const running = runningWorkers(output())
    return running.length === workers && running
  })
  const answers: Answer[] = []
  for (const pid of pids) {
    const others = pids.filter((other) => other !== pid)
    try {
      for (const other of others) process.kill(other, 'SIGSTOP')
      answers.push(await ask())
    } finally {
      for (const other of others) process.kill(other, 'SIGCONT')
    }
  }
  return answers
}

/** The process ids of the workers that have said that they listen, and have not exited. */
function runningWorkers(output: string): number[] {
  const exited = new Set([...output.matchAll(/"worker":(\d+),.*"msg":"worker exited/g)].map(([, pid]) => pid))
  return [...output.matchAll(/"pid":(\d+),"msg":"worker listening"/g)]
    .map(([, pid]) => pid)
    .filter((pid) => !exited.has(pid))
    .map(Number)
}
