import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { installDebianPackages } from '../support/run/packages.ts'

/**
 * Runs a script of this folder in Debian's PHP, after installing PHP and the packages that the script needs.
 *
 * @throws if the script fails, as it does without its packages
 */
export function askPhp(
  script: string,
  args: string[],
  packages: readonly string[],
  question: unknown,
): unknown {
  installDebianPackages(['php-cli', ...packages])
  const { status, stdout, stderr } = spawnSync('/usr/bin/php', [join(import.meta.dirname, script), ...args], {
    input: JSON.stringify(question),
    encoding: 'utf8',
    maxBuffer: 2 ** 29,
  })
  if (status !== 0) throw new Error(`${script} (${packages.join(', ')}) ended with ${status}: ${stderr}`)
  return JSON.parse(stdout)
}
