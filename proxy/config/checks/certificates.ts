import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { createSecureContext } from 'node:tls'
import { problemAt, reasonOf, showValue, type Problem } from '../../../shared/settings/problems.ts'
import type { ReadSettings } from '../../../shared/settings/settings.ts'
import { tryPair } from '../../http/connection/tls/certificate-pair.ts'
import type { gatewayTable } from '../settings-table.ts'

type Read = ReadSettings<typeof gatewayTable>

/** The folder that a setting's relative path is from: that of the settings file, or the working directory for a variable. */
export type FolderOf = (property: keyof typeof gatewayTable) => string

/** Two settings that name a certificate and its key. */
type Pair =
  | { readonly cert: 'tlsCertFile'; readonly key: 'tlsKeyFile' }
  | { readonly cert: 'redisCertFile'; readonly key: 'redisKeyFile' }

/** Tries certificate and key the way they will be used. Both are needed, or neither. */
export function checkPair({ values, placeOf }: Read, { cert, key }: Pair, folderOf: FolderOf): Problem[] {
  if (!(cert in values && key in values)) return []
  const certFile = values[cert]
  const keyFile = values[key]
  if (certFile === undefined && keyFile === undefined) return []
  if (certFile === undefined)
    return [problemAt(placeOf(cert), 'missing, needs a certificate file for the TLS key')]
  if (keyFile === undefined) {
    return [problemAt(placeOf(key), 'missing, needs a key file for the TLS certificate')]
  }
  const readCert = () => readFileSync(resolve(folderOf(cert), certFile))
  const readKey = () => readFileSync(resolve(folderOf(key), keyFile))
  const problems: Problem[] = []
  const certError = errorOf(() => createSecureContext({ cert: readCert() }))
  if (certError !== undefined) {
    const text = `got ${showValue(certFile)}, needs a readable PEM certificate (${certError})`
    problems.push(problemAt(placeOf(cert), text))
  }
  const keyError = errorOf(() => createSecureContext({ key: readKey() }))
  if (keyError !== undefined) {
    const text = `got ${showValue(keyFile)}, needs a readable PEM key without passphrase (${keyError})`
    problems.push(problemAt(placeOf(key), text))
  }
  if (problems.length === 0 && errorOf(() => tryPair({ cert: readCert(), key: readKey() }))) {
    const text = `got ${showValue(keyFile)}, needs the private key of the certificate in ${showValue(certFile)}`
    problems.push(problemAt(placeOf(key), text))
  }
  return problems
}

/** Checks that a file of CA certificates has at least one that can be read. */
export function checkAuthorities(
  { values, placeOf }: Read,
  property: 'upstreamCaFile' | 'redisCaFile',
  folderOf: FolderOf,
): Problem[] {
  const file = values[property]
  if (file === undefined) return []
  const mistake = mistakeInAuthorities(file, folderOf(property))
  return mistake === undefined ? [] : [problemAt(placeOf(property), mistake)]
}

/** @returns the mistake in a file of CA certificates; undefined if it is valid */
export function mistakeInAuthorities(file: string, folder: string): string | undefined {
  const error = errorOf(() => new X509Certificate(readFileSync(resolve(folder, file))))
  return error === undefined
    ? undefined
    : `got ${showValue(file)}, needs a readable PEM certificate (${error})`
}

function errorOf(use: () => unknown): string | undefined {
  try {
    use()
    return undefined
  } catch (error) {
    return reasonOf(error)
  }
}
