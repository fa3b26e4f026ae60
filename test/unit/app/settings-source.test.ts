import { execFile, execFileSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readSettings } from '../../../proxy/app/reload/settings-source.ts'
import { atEndOfFile } from '../../support/run/at-end.ts'
import { directoryWith } from '../../support/gateway/settings.ts'
import { makeTemporaryDirectory } from '../../support/run/temporary-directory.ts'

// A shell's `<(…)` and many secret managers provide a pipe. Opening it again would block the whole gateway until somebody writes to it; if
// the writer only closes it, the gateway would read nothing.

function makePipe(): string {
  const path = join(makeTemporaryDirectory(), 'pipe')
  execFileSync('mkfifo', [path])
  return path
}

/** Another process opens the pipe, writes and closes it. The process waits until the pipe is read. */
function writeTo(path: string, text: string): void {
  const writer = execFile('sh', ['-c', 'printf %s "$1" > "$2"', 'sh', text, path])
  atEndOfFile(() => void writer.kill())
}

test('a settings file that is a pipe is not read again', async () => {
  const path = makePipe()
  writeTo(path, 'limits: []\n')
  const { source } = readSettings({ CONFIG_FILE: path }, makeTemporaryDirectory())
  writeTo(path, '')
  expect(await source.load()).toEqual({
    mistakes: [`CONFIG_FILE: ${path} is a pipe, which cannot be read again`],
  })
})

test('a secret file that is a pipe is not read again', async () => {
  const path = makePipe()
  const cwd = directoryWith('limits: []\n')
  writeTo(path, 'a-token-of-16-or-more')
  const { source } = readSettings({ ADMIN_TOKEN_FILE: path }, cwd)
  writeTo(path, 'a-token-of-16-or-more')
  expect(await source.load()).toEqual({
    mistakes: [`ADMIN_TOKEN_FILE: ${path} is a pipe, which cannot be read again`],
  })
})

// A template that was rendered without its data, or an editor that empties the file before it writes it: with another table in place of
// theirs, clients that were denied or limited would pass.

test.each([
  ['empty', ''],
  ['of a line feed', '\n'],
  ['of comments, as a template without its data leaves it', '# Managed by a template.\n---\n'],
  ['of a long comment, which is read in a thread', '# limits: []\n'.repeat(500)],
])('a file that is %s does not take the place of one with settings', async (_, text) => {
  for (const before of ['limits: []\n', 'denyList: [{ ip: 192.0.2.7 }]\n']) {
    const cwd = directoryWith(before)
    const file = join(cwd, 'sluice.yaml')
    const { source } = readSettings({}, cwd)
    writeFileSync(file, text)
    expect(await source.load()).toEqual({ mistakes: [`${file}: is empty, but had settings before`] })
  }
})

test('a file that was empty at the start may stay so', async () => {
  const cwd = directoryWith('# The built-in table is meant.\n')
  const { source } = readSettings({}, cwd)
  expect(await source.load()).toHaveProperty('settings.limitsFile', undefined)
  writeFileSync(join(cwd, 'sluice.yaml'), '')
  expect(await source.load()).toHaveProperty('settings.limitsFile', undefined)
})

test('a file that has appeared after the start and is gone again does not take its settings along', async () => {
  const cwd = makeTemporaryDirectory()
  const file = join(cwd, 'sluice.yaml')
  const { source } = readSettings({}, cwd)
  expect(await source.load()).toHaveProperty('settings.limitsFile', undefined)
  writeFileSync(file, 'limits: []\n')
  expect(await source.load()).toHaveProperty('settings.limitsFile', file)
  rmSync(file)
  expect(await source.load()).toEqual({ mistakes: [`${file}: is missing, but had settings before`] })
})
