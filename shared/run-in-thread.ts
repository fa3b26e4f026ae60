import { Worker, type WorkerOptions } from 'node:worker_threads'

/**
 * Runs a module in a thread of its own, so that this process serves requests meanwhile. The exit of the process does not wait for the
 * thread.
 *
 * @param module the module to run, which posts one message: the answer
 * @param options.task the work of the thread, for error messages: `reading the list`
 * @param options.maxMs milliseconds after which the thread is terminated
 * @returns the answer. Rejects if the thread throws, exits without an answer, or exceeds its limit of time or memory.
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
      // The thread needs none of the modules that an option preloads into this process.
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
