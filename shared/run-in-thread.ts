import { Worker, type WorkerOptions } from 'node:worker_threads'

/**
 * Runs a module in a thread that ends with it, so that this process serves requests meanwhile. The exit of the process does not wait for
 * the thread.
 *
 * @param module posts one message, the answer
 * @param options.task what it does, for errors: `reading the list`
 * @param options.maxMs milliseconds after which it is terminated
 * @returns rejects with an exception of the thread, and if it exits without an answer, or takes more time or memory than it may
 */
export function runInThread<Answer>(
  module: URL,
  options: {
    readonly task: string
    readonly input: unknown
    readonly maxMs: number
    readonly resourceLimits: WorkerOptions['resourceLimits']
  },
): Promise<Answer> {
  const { task, input, maxMs, resourceLimits } = options
  return new Promise<Answer>((resolve, reject) => {
    const worker = new Worker(module, {
      workerData: input,
      // Modules preloaded into this process by an option are not for that thread.
      execArgv: [],
      resourceLimits,
    })
    worker.unref()
    const timer = setTimeout(() => {
      reject(new Error(`${task} took longer than ${maxMs / 1000} s`))
      void worker.terminate()
    }, maxMs).unref()
    worker.once('message', resolve)
    worker.once('error', reject)
    worker.once('exit', () => {
      clearTimeout(timer)
      reject(new Error(`the thread for ${task} exited without an answer`))
    })
  })
}
