import { extname } from 'node:path'
import { runInThread } from '../../../../shared/run-in-thread.ts'
import type { IpAddress } from '../ip-address.ts'
import type { ReadList } from './read-list.ts'

/** The input and output of the thread. */
export type ListAsked = { readonly path: string; readonly find?: IpAddress | undefined }
export type ListAnswer = { readonly read: ReadList } | { readonly error: string }

/** The longest list takes seconds, and longer on a busy machine. */
const MAX_DURATION_MS = 120_000
/** The longest list takes half of it. The buffers that hold the entries are not part of the heap. */
const MAX_HEAP_MB = 256
/** Megabytes of the young generation: every line is a short text, which a small one collects as well, in less memory. */
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
  const answer = await runInThread<ListAnswer>(thread, {
    task: 'reading the list',
    input: { path, find } satisfies ListAsked,
    maxMs: MAX_DURATION_MS,
    resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB, maxYoungGenerationSizeMb: MAX_YOUNG_MB },
  })
  if ('error' in answer) throw new Error(answer.error)
  return answer.read
}
