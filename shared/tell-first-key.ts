/**
 * The message that `npm start` sends to the origin once the gateway in front of it accepts requests, so that the command printed with the
 * first key works.
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
    // The channel must not keep this process alive: if the parent has exited, nobody reads the line.
    process.channel?.unref()
  })
}
