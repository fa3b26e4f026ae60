import { extname } from 'node:path'
import { runInThread } from '../../../../shared/run-in-thread.ts'
import type { IpAddress } from '../ip-address.ts'
import type { ReadList } from './read-list.ts'

/** The input and output of the thread. */
export type ListAsked = { readonly path: string; readonly find?: IpAddress | undefined }
export type ListAnswer = { readonly read: ReadList } | { readonly error: string }

/** The longest list takes seconds, or longer on a busy machine. */
const MAX_DURATION_MS = 120_000
/** The longest list needs half of this. The buffers with the entries are not part of the heap. */
const MAX_HEAP_MB = 256
/** Size of the young generation. Lines are short texts, which a small young generation collects equally well in less memory. */
const MAX_YOUNG_MB = 4

/** The source file or the built file, like this one. */
const thread = new URL(`./list-thread${extname(import.meta.filename)}`, import.meta.url)

/**
 * Reads a list as `readList` does, in a thread of its own: a million entries take a second of CPU time, during which this process continues
 * to serve. The data is transferred, not copied.
 *
 * @returns a promise that rejects if the file cannot be read, or if the thread fails or takes more time or memory than any list needs
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
