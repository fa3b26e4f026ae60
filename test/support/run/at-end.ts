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
 * Calls `cleanUp` when this process ends, interrupted or not. `cleanUp` must be synchronous.
 *
 * Exit handlers alone are not enough: if only certain libraries listen to a signal, it ends the process without calling them.
 */
export function atEnd(cleanUp: () => void): void {
  atExit.add(cleanUp)
}

const afterFile = new Set<() => unknown>()

/**
 * Calls `cleanUp` at the end of every test file of this process, which runs several files one after another. A module that calls vitest's
 * `afterAll` instead would clean up only after the file that happens to load it first.
 */
export function atEndOfFile(cleanUp: () => unknown): void {
  afterFile.add(cleanUp)
}

/** Called by `after-file.ts` only. */
export async function endFile(): Promise<void> {
  await Promise.all([...afterFile].map((cleanUp) => cleanUp()))
}
