import { hash } from 'node:crypto'
import { resolve } from 'node:path'
import {
  problemAt,
  reasonOf,
  type Place,
  type PlaceOf,
  type Problem,
} from '../../../shared/settings/problems.ts'
import { readRegularFileSync } from '../../../shared/settings/regular-file.ts'
import { findUntriedKeys } from '../../limits/keys/tokens/check-costs.ts'
import { checkKeySet, checkSecret } from '../../limits/keys/tokens/load-key-set.ts'
import type { TokenSettings } from '../../limits/keys/tokens/tokens.ts'

/** `jwt` with an absolute path and a fingerprint of the file's content; `keySet`: the text of a key set in a file. */
export type ReadKeys = {
  readonly jwt: TokenSettings | undefined
  readonly keySet?: string
  readonly problems: readonly Problem[]
}

/**
 * Reads the file of a key set or a secret, only once, because it may be replaced at any time. Key sets at URLs are checked later, because
 * their servers may not be available yet.
 *
 * @param folder the folder of the settings file, from which relative paths start
 */
export function readKeys(jwt: TokenSettings | undefined, placeOf: PlaceOf, folder: string): ReadKeys {
  if (!jwt || jwt.place.kind === 'url') return { jwt, problems: [] }
  const { kind } = jwt.place
  const path = resolve(folder, jwt.place.path)
  try {
    const content = readRegularFileSync(path)
    const located = { ...jwt, place: { ...jwt.place, path, digest: hash('sha256', content) } }
    if (kind === 'file') return { jwt: located, keySet: checkKeySet(content.toString()), problems: [] }
    checkSecret(content)
    return { jwt: located, problems: [] }
  } catch (error) {
    const [field, needed] =
      kind === 'file' ? ['jwksFile', 'a JSON Web Key Set'] : ['secretFile', 'a secret of 32 bytes or more']
    const text = `needs a file with ${needed} (${reasonOf(error)})`
    return { jwt, problems: [problemAt(placeOf(['jwt', field]), text)] }
  }
}

/** Warns of keys in a file that are never used to verify a token. */
export function warnOfUntriedKeys(keySet: string, { label }: Place): string[] {
  return findUntriedKeys(keySet).map((reason) => `${label}: ${reason}`)
}
