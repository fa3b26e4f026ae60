import { resolve } from 'node:path'
import { reasonOf, type Problem } from '../../../shared/settings/problems.ts'
import { readBounded } from '../../../shared/settings/read-bounded.ts'
import { showSecretPath } from '../../../shared/settings/secret-path.ts'

/** Variables whose value is or may contain a secret. */
export const secretVariables: readonly string[] = [
  'ADMIN_TOKEN',
  'REDIS_URL',
  'WEBHOOK_SECRET',
  'DEVICE_SECRET',
]

/** Maximum size of a file, larger than any secret. */
const MAX_BYTES = 16 * 1024

/** The files from which secrets are read, by the variables that name them. */
export function secretFiles(env: NodeJS.ProcessEnv, cwd: string): ReadonlyMap<string, string> {
  return new Map(
    secretVariables.flatMap((variable) => {
      const path = env[`${variable}_FILE`]
      return path ? [[`${variable}_FILE`, resolve(cwd, path)]] : []
    }),
  )
}

/**
 * Reads a file that holds a secret, without its final line end.
 *
 * @throws Error if the file cannot be read or is not UTF-8
 */
export function readSecretFile(path: string): string {
  return new TextDecoder('utf-8', { fatal: true }).decode(readBounded(path, MAX_BYTES)).replace(/\r?\n$/, '')
}

/**
 * Reads secrets from the files that `ADMIN_TOKEN_FILE` and similar variables name, as is usual in containers.
 *
 * @param cwd the directory that relative paths are resolved against
 * @returns the environment with the secrets, without their final line ends
 */
export function readSecretFiles(
  given: NodeJS.ProcessEnv,
  cwd: string,
): { readonly env: NodeJS.ProcessEnv; readonly problems: readonly Problem[] } {
  const env = { ...given }
  const problems: Problem[] = []
  const fail = (text: string): void => void problems.push({ line: 0, text })
  for (const variable of secretVariables) {
    const path = given[`${variable}_FILE`]
    if (!path) continue
    if (given[variable]) {
      fail(`${variable}_FILE: the same setting as ${variable}, keep one of them`)
      continue
    }
    try {
      env[variable] = readSecretFile(resolve(cwd, path))
      if (env[variable] === '') fail(`${variable}_FILE: got ${showSecretPath(path, cwd)}, the file is empty`)
    } catch (error) {
      fail(
        `${variable}_FILE: got ${showSecretPath(path, cwd)}, needs a readable file of UTF-8 text (${reasonOf(error)})`,
      )
    }
  }
  return { env, problems }
}
