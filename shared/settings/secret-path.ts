import { existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { showValue } from './problems.ts'

/** Replaces, in messages, a value that is or may be a secret. */
export const NOT_SHOWN = 'a value that is not shown'

/**
 * Shows the path of a file that holds a secret. People sometimes paste the secret itself instead of a path, so the text is shown only if
 * the file exists, or at least the folder that it names.
 *
 * @param path as written
 * @param folder the folder that relative paths start from
 */
export function showSecretPath(path: string, folder: string): string {
  const named = dirname(path)
  const isFolderNamed = named !== '.' && named !== '/'
  const isPath = existsSync(resolve(folder, path)) || (isFolderNamed && existsSync(resolve(folder, named)))
  return isPath ? showValue(path) : NOT_SHOWN
}
