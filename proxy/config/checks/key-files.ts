import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { withoutMark } from '../../../shared/settings/byte-order-mark.ts'
import { problemAt, reasonOf, type Place, type Problem } from '../../../shared/settings/problems.ts'
import { findUntriedKeys } from '../../limits/keys/tokens/check-costs.ts'
import { checkKeySet, checkSecret } from '../../limits/keys/tokens/load-key-set.ts'
import type { TokenSettings } from '../../limits/keys/tokens/tokens.ts'

/**
 * The settings, with an absolute path and a fingerprint of the file's content.
 *
 * @param folder that of the settings file, which a relative path is from
 */
export function locateKeys(jwt: TokenSettings | undefined, folder: string): TokenSettings | undefined {
  if (!jwt || jwt.place.kind === 'url') return jwt
  const path = resolve(folder, jwt.place.path)
  return { ...jwt, place: { ...jwt.place, path, digest: hash('sha256', readFileSync(path)) } }
}

/** Finds a key set or a secret that is missing or invalid. Key sets at URLs are checked later, as they may become available later. */
export function checkKeyFiles(
  jwt: TokenSettings | undefined,
  placeOf: (path: readonly PropertyKey[]) => Place,
  folder: string,
): Problem[] {
  if (!jwt || jwt.place.kind === 'url') return []
  const { kind, path } = jwt.place
  const [field, check] =
    kind === 'file' ? (['jwksFile', checkKeySet] as const) : (['secretFile', checkSecret] as const)
  try {
    check(readFileSync(resolve(folder, path), 'utf8'))
    return []
  } catch (error) {
    return [
      problemAt(
        placeOf(['jwt', field]),
        `needs a file with ${kind === 'file' ? 'a JSON Web Key Set' : 'a secret of 32 bytes or more'} (${reasonOf(error)})`,
      ),
    ]
  }
}

/**
 * Warns of keys in a file that no token is tried with.
 *
 * @param settings of `locateKeys`
 */
export function warnOfUntriedKeys({ place }: TokenSettings, { label }: Place): string[] {
  if (place.kind !== 'file') return []
  const keySet = readFileSync(place.path, 'utf8')
  return findUntriedKeys(withoutMark(keySet)).map((reason) => `${label}: ${reason}`)
}
