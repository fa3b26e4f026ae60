import { existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { showValue } from './problems.ts'

/** Stands in messages for a value that is a secret, or may be one. */
export const NOT_SHOWN = 'a value that is not shown'

/**
 * The path of a file with a secret, for a message. In place of the path people paste the secret itself: it is shown only where there is
 * such a file, or at least the folder that the path names.
 *
 * @param path as written
 * @param folder that a relative path is from
 */
export function showSecretPath(path: string, folder: string): string {
  const named = dirname(path)
  const isFolderNamed = named !== '.' && named !== '/'
  const isPath = existsSync(resolve(folder, path)) || (isFolderNamed && existsSync(resolve(folder, named)))
  return isPath ? showValue(path) : NOT_SHOWN
}
