import { isIP } from 'node:net'
import { showValue } from './settings/problems.ts'
import { SettingsError } from './settings/settings.ts'

/** System errors that are due to a wrong setting or the machine, not to a bug. */
const reasons: Readonly<Record<string, string>> = {
  EADDRINUSE: 'is in use by another process',
  EACCES: 'needs more privileges than this user has',
}

/** A problem at start that is not a bug. The message is for the operator. */
export class StartError extends Error {
  override readonly name = 'StartError'
}

/**
 * Exits with status 1 if the operator can fix the problem: prints one problem per line, without a stack trace. Rethrows
 * any other error.
 */
export function exitOnStartError(error: unknown): never {
  const isKnown = error instanceof SettingsError || error instanceof StartError
  const text = isKnown ? error.message : describeListenError(error)
  if (text === undefined) throw error
  process.stderr.write(`${text}\n`)
  process.exit(1)
}

/**
 * Names the setting where it is the host that cannot be listened on: somebody may not know that it is set, as conda and
 * some shells set `HOST`. Any other error of `listen` is returned as it is.
 *
 * @param setting the variable that sets the host
 */
export function nameHostSetting(error: Error, setting: string, host: string | undefined): Error {
  const code = 'code' in error ? String(error.code) : ''
  let reason: string
  if ('hostname' in error) reason = `cannot be resolved (${code})`
  else if (code === 'EADDRNOTAVAIL') reason = 'is not an address of this machine'
  else return error
  return new StartError(`cannot listen: ${setting} is ${showValue(host)}, which ${reason}`)
}

/** Of an error of `listen`; undefined for any other. */
function describeListenError(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined
  const code = String(error.code)
  const reason = reasons[code]
  const address = 'address' in error && isIP(String(error.address)) > 0 ? [String(error.address)] : []
  // An error about the address alone may name no port.
  const port = 'port' in error ? [`port ${String(error.port)}`] : []
  const where = [...address, ...port].join(' ')
  return reason === undefined || where === '' ? undefined : `cannot listen: ${where} ${reason}`
}
