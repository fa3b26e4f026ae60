import { spawnSync } from 'node:child_process'
import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/**
 * Installs the packages of a folder with a `package.json` of its own, unless the versions of its lock file are installed already. Throws if
 * npm fails.
 */
export function installNpmPackages(folder: string): void {
  const lock = join(folder, 'package-lock.json')
  const installed = join(folder, 'node_modules/.package-lock.json')
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync(lock).mtimeMs) return
  const args = ['ci', '--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund']
  const { status } = spawnSync('npm', args, { stdio: 'inherit' })
  if (status !== 0) throw new Error(`npm could not install the packages of ${join(folder, 'package.json')}`)
}

/**
 * Installs Debian packages if that is possible without a prompt: on Debian, as root. Does not report whether it worked; look for the
 * installed package.
 */
export function installDebianPackages(packages: readonly string[]): void {
  if (packages.length === 0 || !existsSync('/etc/debian_version') || process.getuid?.() !== 0) return
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  spawnSync('apt-get', ['update', '-qq'], { env, stdio: 'ignore' })
  // Waits for another apt-get on this machine.
  const wait = ['-o', 'DPkg::Lock::Timeout=300']
  const args = ['install', '-y', '-qq', '--no-install-recommends', ...wait, ...packages]
  spawnSync('apt-get', args, { env, stdio: 'ignore' })
}

/** The path of a program in the folders of `PATH`; undefined if it is not there. */
export function findProgram(name: string): string | undefined {
  return (process.env['PATH'] ?? '')
    .split(delimiter)
    .map((folder) => join(folder, name))
    .find(isExecutable)
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
