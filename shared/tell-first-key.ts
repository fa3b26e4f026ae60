/**
 * The message that `npm start` sends to the origin when the gateway before it accepts requests: the line with the first key works now.
 */
export const tellFirstKey = 'tell the first key'

/** Resolves when the first key can be printed: at once if no parent process will send the message. */
export function timeToTellFirstKey(process: NodeJS.Process): Promise<void> {
  if (!process.connected) return Promise.resolve()
  return new Promise((resolve) => {
    const heard = (message: unknown): void => {
      if (message !== tellFirstKey) return
      process.off('message', heard)
      // The channel would keep the process alive.
      process.disconnect?.()
      resolve()
    }
    process.on('message', heard)
    // If the parent is gone, nobody reads the line: the channel must not keep this process alive.
    process.channel?.unref()
  })
}
