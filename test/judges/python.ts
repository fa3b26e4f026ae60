import { execFile, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { installDebianPackages } from '../support/run/packages.ts'

const PYTHON = '/usr/bin/python3'

/**
 * Runs a script of this folder in Debian's Python, after installing the packages, which act as judges.
 *
 * @param packages names of Debian packages
 * @throws if the script fails, as it does without its packages
 */
export function askPython(script: string, packages: readonly string[], question: object): unknown {
  installDebianPackages(packages)
  const { status, stdout, stderr } = spawnSync(PYTHON, [join(import.meta.dirname, script)], {
    input: JSON.stringify(question),
    encoding: 'utf8',
    maxBuffer: 2 ** 29,
  })
  if (status !== 0) throw new Error(`${script} (${packages.join(', ')}) ended with ${status}: ${stderr}`)
  return JSON.parse(stdout)
}

/** Does what `askPython` does without blocking, so that a gateway or backend in this process can answer the script. */
export async function askPythonWhile(
  script: string,
  packages: readonly string[],
  question: object,
): Promise<unknown> {
  installDebianPackages(packages)
  const output = await new Promise<string>((resolve, reject) => {
    const child = execFile(PYTHON, [join(import.meta.dirname, script)], (error, stdout, stderr) =>
      error
        ? reject(new Error(`${script} (${packages.join(', ')}): ${stderr}`, { cause: error }))
        : resolve(stdout),
    )
    child.stdin?.end(JSON.stringify(question))
  })
  return JSON.parse(output)
}
