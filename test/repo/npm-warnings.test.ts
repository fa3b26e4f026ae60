import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'

// npm may run under an old Node of the machine, because the project brings its own Node. npm then warns about each package that needs a
// newer one.

test.each([
  ['without the .npmrc of the repository npm warns', false],
  ['with it npm says nothing', true],
])('npm warns of a package that needs another version of Node, %s', (_, isQuiet) => {
  const directory = makeTemporaryDirectory()
  mkdirSync(join(directory, 'picky'))
  const write = (path: string, content: object): void =>
    writeFileSync(join(directory, path), JSON.stringify(content))
  write('package.json', { name: 'some', private: true, dependencies: { picky: 'file:./picky' } })
  write('picky/package.json', { name: 'picky', version: '1.0.0', engines: { node: '<1' } })
  if (isQuiet) copyFileSync(join(import.meta.dirname, '../../.npmrc'), join(directory, '.npmrc'))
  expect(existsSync(join(directory, '.npmrc'))).toBe(isQuiet)
  // Leaves out the variables that `npm test` has set for this process.
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !name.toLowerCase().startsWith('npm_config_')),
  )
  const args = ['install', '--dry-run', '--offline', '--no-audit', '--no-fund']
  const { status, stderr } = spawnSync('npm', args, { cwd: directory, env, encoding: 'utf8' })
  expect(status).toBe(0)
  if (isQuiet) expect(stderr).toBe('')
  else expect(stderr).toContain('EBADENGINE')
})
