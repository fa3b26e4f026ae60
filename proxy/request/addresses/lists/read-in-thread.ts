import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { IpAddress } from '../ip-address.ts'
import type { ReadList } from './read-list.ts'

/** The input and output of the thread. */
export type ListAsked = { readonly path: string; readonly find?: IpAddress | undefined }
export type ListAnswer = { readonly read: ReadList } | { readonly error: string }

/** The longest list takes seconds, and longer on a busy machine. */
const MAX_DURATION_MS = 120_000
/** The longest list takes half of it. The buffers that hold the entries are not part of the heap. */
const MAX_HEAP_MB = 256
/** Every line is a short text: a small young generation collects them as well, and takes less memory. */
const MAX_YOUNG_MB = 4

/** Source or built. */
const thread = new URL(`./list-thread${extname(import.meta.filename)}`, import.meta.url)

/**
 * Reads a list as `readList` does, in a thread that ends with it: a million entries take a second of CPU, during which this process
 * continues to serve. The data are handed over and not copied.
 *
 * @returns rejects where the file cannot be read, and if the thread fails or takes more time or memory than any list needs
 */
export async function readListInThread(path: string, find?: IpAddress): Promise<ReadList> {
  const answer = await new Promise<ListAnswer>((resolve, reject) => {
    const worker = new Worker(thread, {
      workerData: { path, find } satisfies ListAsked,
      // Modules preloaded into this process by an option are not for that thread.
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB, maxYoungGenerationSizeMb: MAX_YOUNG_MB },
    })
    // A process that ends does not wait for it.
    worker.unref()
    const timer = setTimeout(() => {
      reject(new Error(`reading took longer than ${MAX_DURATION_MS / 1000} s`))
      void worker.terminate()
    }, MAX_DURATION_MS).unref()
    worker.once('message', resolve)
    worker.once('error', reject)
    worker.once('exit', () => {
      clearTimeout(timer)
      reject(new Error('the thread that reads the list exited'))
    })
  })
  if ('error' in answer) throw new Error(answer.error)
  return answer.read
}
