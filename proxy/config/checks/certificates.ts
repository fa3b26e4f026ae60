import { X509Certificate } from 'node:crypto'
import { resolve } from 'node:path'
import { createSecureContext } from 'node:tls'
import { problemAt, reasonOf, showValue, type Problem } from '../../../shared/settings/problems.ts'
import { readRegularFileSync } from '../../../shared/settings/regular-file.ts'
import { NOT_SHOWN, showSecretPath } from '../../../shared/settings/secret-path.ts'
import type { ReadSettings } from '../../../shared/settings/settings.ts'
import { tryPair } from '../../http/connection/tls/certificate-pair.ts'
import type { gatewayTable } from '../settings-table.ts'

type Read = ReadSettings<typeof gatewayTable>

/**
 * Returns the folder from which a setting's relative path starts: the folder of the settings file or, for a variable, the working
 * directory.
 */
export type FolderOf = (property: keyof typeof gatewayTable) => string

/** Checks the certificate and the key for HTTPS by loading them as the server will. Both must be set, or neither. */
export function checkTlsPair({ values, placeOf }: Read, folderOf: FolderOf): Problem[] {
  if (!('tlsCertFile' in values && 'tlsKeyFile' in values)) return []
  const pathOf = (property: 'tlsCertFile' | 'tlsKeyFile'): NamedFile => ({
    name: values[property],
    folder: folderOf(property),
    fail: (text) => problemAt(placeOf(property), text),
  })
  return mistakesInPair(pathOf('tlsCertFile'), pathOf('tlsKeyFile'))
}

type NamedFile = {
  /** The name as written; undefined if it is not set. */
  readonly name: string | undefined
  /** The folder that relative paths start from. */
  readonly folder: string
  fail(text: string): Problem
}

/** Finds the mistakes in a certificate and its key. Both must be set, or neither. */
export function mistakesInPair(cert: NamedFile, key: NamedFile): Problem[] {
  if (cert.name === undefined && key.name === undefined) return []
  if (cert.name === undefined) return [cert.fail('missing, needs a certificate file for the TLS key')]
  if (key.name === undefined) return [key.fail('missing, needs a key file for the TLS certificate')]
  const certPath = resolve(cert.folder, cert.name)
  const keyPath = resolve(key.folder, key.name)
  const problems: Problem[] = []
  const certError = errorOf(() => createSecureContext({ cert: readRegularFileSync(certPath) }))
  if (certError !== undefined)
    problems.push(cert.fail(`got ${showName(cert.name)}, needs a readable PEM certificate (${certError})`))
  const keyError = errorOf(() => createSecureContext({ key: readRegularFileSync(keyPath) }))
  if (keyError !== undefined)
    problems.push(
      key.fail(
        `got ${showSecretPath(key.name, key.folder)}, needs a readable PEM key without passphrase (${keyError})`,
      ),
    )
  const tryBoth = (): unknown =>
    tryPair({ cert: readRegularFileSync(certPath), key: readRegularFileSync(keyPath) })
  if (problems.length === 0 && errorOf(tryBoth)) {
    const text = `got ${showSecretPath(key.name, key.folder)}, needs the private key of the certificate in ${showValue(cert.name)}`
    problems.push(key.fail(text))
  }
  return problems
}

/** Checks that `upstreamCaFile` has at least one certificate that can be read. */
export function checkUpstreamAuthorities({ values, placeOf }: Read, folderOf: FolderOf): Problem[] {
  const file = values.upstreamCaFile
  if (file === undefined) return []
  const mistake = mistakeInAuthorities(file, folderOf('upstreamCaFile'))
  return mistake === undefined ? [] : [problemAt(placeOf('upstreamCaFile'), mistake)]
}

/** @returns the mistake in a file of CA certificates; undefined if it is valid */
export function mistakeInAuthorities(file: string, folder: string): string | undefined {
  const error = errorOf(() => new X509Certificate(readRegularFileSync(resolve(folder, file))))
  return error === undefined
    ? undefined
    : `got ${showName(file)}, needs a readable PEM certificate (${error})`
}

/** Shows the path of a certificate, unless PEM was pasted in its place, which may include the key. */
function showName(path: string): string {
  return path.includes('-----BEGIN') ? NOT_SHOWN : showValue(path)
}

function errorOf(use: () => unknown): string | undefined {
  try {
    use()
    return undefined
  } catch (error) {
    return reasonOf(error)
  }
}
