/** Whether a command that was rejected with this error has not been executed, so that nothing can have been counted. */
export function hasCountedNothing(error: unknown): boolean {
  return isReply(error) || isUnsent(error) || isMoving(error)
}

/** Whether no node would run the command, because its slot is on the way from one to another. */
export function isMoving(error: unknown): boolean {
  return error instanceof Error && /^(TRYAGAIN|Too many Cluster redirections)/.test(error.message)
}

/** Whether Redis says that the user has no right to a command. Each version has words of its own for it. */
export function lacksRight(reason: string): boolean {
  return /NOPERM|no permissions|can't run this command/.test(reason)
}

/** Redis itself answered with an error: it did not run the script. */
function isReply(error: unknown): boolean {
  return error instanceof Error && error.name === 'ReplyError'
}

/** The connection had ended, and the client library had not noticed yet when it was asked whether it is ready. */
function isUnsent(error: unknown): boolean {
  return error instanceof Error && error.message.includes('enableOfflineQueue options is false')
}
