const atExit = new Set<() => void>()

process.once('exit', endProcess)
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => {
    endProcess()
    process.kill(process.pid, signal)
  })
}

function endProcess(): void {
  for (const cleanUp of atExit) cleanUp()
}

/**
 * Calls `cleanUp` when this process ends, interrupted or not. It must do its work synchronously.
 *
 * Exit handlers alone are not enough: a signal whose only listeners are those of certain libraries ends the process
 * without them.
 */
export function atEnd(cleanUp: () => void): void {
  atExit.add(cleanUp)
}

const afterFile = new Set<() => unknown>()

/**
 * Calls `cleanUp` at the end of every test file of this process, which runs several of them, one after the other. Here and
 * not by vitest's `afterAll`, which runs only for the file that happens to load a module first.
 */
export function atEndOfFile(cleanUp: () => unknown): void {
  afterFile.add(cleanUp)
}

/** Called by `after-file.ts` only. */
export async function endFile(): Promise<void> {
  await Promise.all([...afterFile].map((cleanUp) => cleanUp()))
}
