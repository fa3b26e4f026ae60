import { isIP } from 'node:net'
import { SettingsError } from './settings/settings.ts'

/** The system's errors that tell of a wrong setting or a busy machine, not of a bug. */
const reasons: Readonly<Record<string, string>> = {
  EADDRINUSE: 'is in use by another process',
  EADDRNOTAVAIL: 'is not an address of this machine',
  EACCES: 'needs more privileges than this user has',
}

/** What keeps a process from starting and is no bug. The message is for its operator. */
export class StartError extends Error {
  override readonly name = 'StartError'
}

/**
 * Ends the process with status 1 where it could not start for a reason that is its operator's to mend: each problem on a
 * line, no stack trace. Anything else is thrown on.
 */
export function exitOnStartError(error: unknown): never {
  const isKnown = error instanceof SettingsError || error instanceof StartError
  const text = isKnown ? error.message : describeListenError(error)
  if (text === undefined) throw error
  process.stderr.write(`${text}\n`)
  process.exit(1)
}

/** Of an error of `listen`; undefined for any other. */
function describeListenError(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined
  const code = String(error.code)
  if ('hostname' in error) return `cannot listen: ${String(error.hostname)} cannot be resolved (${code})`
  const reason = reasons[code]
  const address = 'address' in error && isIP(String(error.address)) > 0 ? [String(error.address)] : []
  // An error about the address alone may name no port.
  const port = 'port' in error ? [`port ${String(error.port)}`] : []
  const where = [...address, ...port].join(' ')
  return reason === undefined || where === '' ? undefined : `cannot listen: ${where} ${reason}`
}
