import { errorText } from '../../../../shared/error-text.ts'

/**
 * Text that engines put around the error of a command that a script has called. Redis up to 6.2 and KeyDB answer
 * `@user_script: 106: -READONLY …` to `redis.pcall` and `ERR Error running script (call to f_…): @user_script:1: …` if the
 * script fails with the error; Dragonfly writes the latter without the line.
 */
const AROUND =
  /^(?:-|ERR (?=-|@?user_script:|Error (?:running|compiling) script|ACL failure)|Error (?:running|compiling) script (?:\([^)]*\))?: ?|@?user_script: ?\d+: |ACL failure in script: )/

/** The suffix of Redis 7 and Valkey. */
const SCRIPT_SUFFIX = / script: (?:[^ ]+, )?on @user_script:\d+\.$/

/** Errors that some engines write in words instead of a code. */
const WORDS: readonly (readonly [RegExp, string])[] = [
  [/^(?:ERR )?The user executing the script can't (?:run|access)/, 'NOPERM'],
  [/^(?:ERR )?User .* has no permissions/, 'NOPERM'],
  // Valkey 9.1 runs scripts in a module, and names no script.
  [/^(?:ERR )?(?:(?:Lua )?[Ss]cript a|A)ttempted to access a non local key/, 'MOVED'],
  [/^(?:ERR )?[Ss]cript tried accessing undeclared key/, 'UNDECLARED'],
  [/^(?:ERR )?Script attempted to access keys that do not hash to the same slot/, 'CROSSSLOT'],
  [/^(?:ERR )?invalid password/, 'WRONGPASS'],
]

/**
 * Returns the code with which an error of Redis begins (`READONLY`, `NOPERM`, …), regardless of the engine's format; an empty
 * text if there is no code. Only the beginning is searched, because the rest may repeat text from a client.
 *
 * @param error the error with which a command was rejected, or its text, such as `redis.pcall` returns it
 */
export function errorCodeOf(error: unknown): string {
  const text = unwrap(errorText(error))
  for (const [words, code] of WORDS) if (words.test(text)) return code
  return /^[A-Z][A-Z0-9_]*(?= |$)/.exec(text)?.[0] ?? ''
}

/** Returns the message of an error for the log, without the text that engines put around it and without terms of the library. */
export function reasonOf(error: unknown): string {
  const text = unwrap(errorText(error)).replace(SCRIPT_SUFFIX, '').replace(/\s+/g, ' ').trim()
  if (isUnsent(error)) return 'not connected'
  if (text.startsWith('Reached the max retries per request limit')) return 'connection lost'
  return text
}

/** Whether a command that was rejected with this error has not been executed, so that nothing can have been counted. */
export function hasCountedNothing(error: unknown): boolean {
  return (isReply(error) && !isOfRunningScript(error)) || isUnsent(error) || isMoving(error)
}

/** Whether no node would run the command, because its slot is moving from one node to another. */
export function isMoving(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  return errorCodeOf(error) === 'TRYAGAIN' || error.message.startsWith('Too many Cluster redirections')
}

/** Whether Redis says that the user has no right to a command or a key. */
export function lacksRight(error: unknown): boolean {
  return errorCodeOf(error) === 'NOPERM'
}

/** Whether the error comes from a replica, so that a new connection may lead to its master. */
export function isOfReplica(error: unknown): boolean {
  const code = errorCodeOf(error)
  return code === 'READONLY' || code === 'MASTERDOWN'
}

/** Whether an error is about a single key that holds something other than a counter. */
export function isOfOneCounter(error: unknown): boolean {
  if (errorCodeOf(error) === 'WRONGTYPE') return true
  return /^ERR (value is not an integer|increment or decrement would overflow)/.test(unwrap(errorText(error)))
}

function unwrap(text: string): string {
  for (let rest = text; ; text = rest) {
    rest = text.replace(AROUND, '')
    if (rest === text) return text
  }
}

/** Redis itself answered with an error. */
function isReply(error: unknown): boolean {
  return error instanceof Error && error.name === 'ReplyError'
}

/** A script ended with the error, perhaps after it had counted. */
function isOfRunningScript(error: unknown): boolean {
  return error instanceof Error && /user_script:|Error running script/.test(error.message)
}

/** Whether the command was not sent: the connection had ended, but the client library had not noticed this yet. */
export function isUnsent(error: unknown): boolean {
  return error instanceof Error && error.message.includes('enableOfflineQueue options is false')
}
