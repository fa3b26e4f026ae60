/** Resolves with the next uncaught exception of this process, which then is none of vitest's. */
export function nextUncaughtException(): Promise<unknown> {
  const listeners = process.listeners('uncaughtException')
  process.removeAllListeners('uncaughtException')
  return new Promise((resolve) => {
    process.once('uncaughtException', (error) => {
      for (const listener of listeners) process.on('uncaughtException', listener)
      resolve(error)
    })
  })
}
