import { execFileSync } from 'node:child_process'
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Engine } from './engines.ts'

/** Kept between runs: a server with its libraries is a download of 10 to 30 MB. */
const CACHE = join(tmpdir(), 'sluice-engines')

/**
 * Gets a server from any suite of Debian, whichever suite this machine runs. Unpacks the package and the libraries that it needs into a
 * folder, and installs nothing.
 *
 * @returns the path of a program that starts the server
 * @throws Error if the package cannot be obtained
 */
export function obtainEngine({ name, suite, package: packageName }: Engine): string {
  const root = join(CACHE, name)
  const program = join(root, 'start')
  if (existsSync(program)) return program
  try {
    const files = unpackPackages(root, suite, packageName)
    writeFileSync(program, starterOf(files, packageName), { mode: 0o755 })
    return program
  } catch (cause) {
    throw new Error(`${packageName} of Debian's suite ${suite} cannot be had here`, { cause })
  }
}

/** @returns the folder with the files of the package and of all its dependencies */
function unpackPackages(root: string, suite: string, packageName: string): string {
  const apt = join(root, 'apt')
  for (const folder of ['etc/apt/apt.conf.d', 'etc/apt/preferences.d', 'var/lib/dpkg'])
    mkdirSync(join(apt, folder), { recursive: true })
  for (const folder of ['var/lib/apt/lists', 'var/cache/apt/archives'])
    mkdirSync(join(apt, folder, 'partial'), { recursive: true })
  const source = `deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${mirror()} ${suite} main\n`
  writeFileSync(join(apt, 'etc/apt/sources.list'), source)
  // An empty list of installed packages makes apt fetch every library.
  const status = join(apt, 'var/lib/dpkg/status')
  writeFileSync(status, '')
  const place = ['-qq', '-o', `Dir=${apt}`, '-o', `Dir::State::status=${status}`]
  const get = (...args: string[]): Buffer => execFileSync('apt-get', [...place, ...args], { stdio: 'pipe' })
  get('update')
  get('install', '-y', '--download-only', '--no-install-recommends', packageName)
  const files = join(root, 'files')
  mkdirSync(files, { recursive: true })
  for (const archive of globSync(join(apt, 'var/cache/apt/archives/*.deb')))
    execFileSync('dpkg-deb', ['-x', archive, files])
  return files
}

/** Where this machine gets its packages from. */
function mirror(): string {
  const lists = globSync(['/etc/apt/sources.list', '/etc/apt/sources.list.d/debian.{list,sources}'])
  const text = lists.map((file) => readFileSync(file, 'utf8')).join('\n')
  return /^(?:URIs:|deb\b).*?(https?:\/\/\S+\/debian)\b/m.exec(text)?.[1] ?? 'http://deb.debian.org/debian'
}

/** Runs the program with the loader and the C library of its suite instead of the machine's. */
function starterOf(files: string, packageName: string): string {
  const [loader] = globSync(join(files, '{lib,usr/lib}/*-linux-gnu/ld-linux*.so.*'))
  if (loader === undefined) throw new Error('the suite has no loader of programs')
  const libraries = globSync(join(files, '{lib,usr/lib}/*-linux-gnu')).join(':')
  return `#!/bin/sh\nexec ${loader} --library-path ${libraries} ${join(files, 'usr/bin', packageName)} "$@"\n`
}
