import { spawnSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** Installs what the benchmark compares with, where that has not been done for the lock file as it is now. */
export function installSubjects(): void {
  const lock = join(import.meta.dirname, 'package-lock.json')
  const installed = join(import.meta.dirname, 'node_modules/.package-lock.json')
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync(lock).mtimeMs) return
  const args = ['ci', '--prefix', import.meta.dirname, '--ignore-scripts', '--no-audit', '--no-fund']
  const { status } = spawnSync('npm', args, { stdio: 'inherit' })
  if (status !== 0) throw new Error('npm could not install the packages of bench/package.json')
}
