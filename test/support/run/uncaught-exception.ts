import { onTestFinished } from 'vitest'

/** Resolves with the next uncaught exception of this process, and hides it from vitest. Call it in a test. */
export function nextUncaughtException(): Promise<unknown> {
  const listeners = process.listeners('uncaughtException')
  process.removeAllListeners('uncaughtException')
  onTestFinished(() => {
    process.removeAllListeners('uncaughtException')
    for (const listener of listeners) process.on('uncaughtException', listener)
  })
  return new Promise((resolve) => process.once('uncaughtException', resolve))
}
