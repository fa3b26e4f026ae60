import { extname } from 'node:path'
import { runInThread } from '../../../shared/run-in-thread.ts'
import { doInTurns } from '../../../shared/steps.ts'
import { readPieces, type SettingsPieces } from './settings-pieces.ts'
import type { ReadSettings } from './reloader.ts'

/** The input and output of the thread. Lines are joined into one text; there can be one for each rule. */
export type WhatToRead = { readonly env: NodeJS.ProcessEnv; readonly cwd: string }
export type ReadInThread =
  | { readonly pieces: SettingsPieces; readonly warnings: string }
  | { readonly mistakes: string }

/** Time limit of the thread. The largest file takes seconds, or many seconds on a busy machine. */
const MAX_DURATION_MS = 120_000
/** Memory limit of the thread. The largest file takes a third of it. */
const MAX_HEAP_MB = 1024

/** The extension is that of this module: source or built. */
const thread = new URL(`./settings-thread${extname(import.meta.filename)}`, import.meta.url)

/**
 * Reads and checks the settings in a separate thread. A table of ten thousand rules takes two seconds of CPU, during which this process
 * continues to serve. The output of the thread is read in turns of the event loop.
 *
 * @param limits for tests
 * @returns the settings or the mistakes. Rejects if the thread fails, or exceeds its limit of time or memory
 */
export async function readInThread(
  { env, cwd }: WhatToRead,
  { maxMs = MAX_DURATION_MS, maxHeapMb = MAX_HEAP_MB } = {},
): Promise<ReadSettings> {
  const reply = await runInThread<ReadInThread>(thread, {
    task: 'reading the settings',
    input: { env: { ...env }, cwd } satisfies WhatToRead,
    maxMs,
    resourceLimits: { maxOldGenerationSizeMb: maxHeapMb },
  })
  if ('mistakes' in reply) return { mistakes: linesOf(reply.mistakes) }
  return { settings: await doInTurns(readPieces(reply.pieces)), warnings: linesOf(reply.warnings) }
}

function linesOf(text: string): readonly string[] {
  return text === '' ? [] : text.split('\n')
}
