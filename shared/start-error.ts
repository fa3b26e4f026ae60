import { isIP } from 'node:net'
import { showValue } from './settings/problems.ts'
import { SettingsError } from './settings/settings-error.ts'

/** System errors that a wrong setting or the machine causes, not a bug. */
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

/** The variables that set where a server listens. */
export type ListenSettings = { readonly host: string; readonly port: string }

/**
 * Names the setting to change. If the host cannot be listened on, also shows its value: the operator may not know that it is set, as conda
 * and some shells set `HOST`. Returns any error that no setting has caused unchanged.
 */
export function nameListenSetting(error: Error, settings: ListenSettings, host: string | undefined): Error {
  const code = 'code' in error ? String(error.code) : ''
  let reason: string
  if ('hostname' in error) reason = `cannot be resolved (${code})`
  else if (code === 'EADDRNOTAVAIL') reason = 'is not an address of this machine'
  else {
    const text = describeListenError(error)
    return text === undefined ? error : new StartError(`${text}, set ${settings.port} to another`)
  }
  return new StartError(`cannot listen: ${settings.host} is ${showValue(host)}, which ${reason}`)
}

/** Describes an error of `listen`; undefined for any other. */
function describeListenError(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined
  const code = String(error.code)
  const reason = reasons[code]
  const address = 'address' in error && isIP(String(error.address)) > 0 ? [String(error.address)] : []
  // An error about the address may not name a port.
  const port = 'port' in error ? [`port ${String(error.port)}`] : []
  const where = [...address, ...port].join(' ')
  return reason === undefined || where === '' ? undefined : `cannot listen: ${where} ${reason}`
}
