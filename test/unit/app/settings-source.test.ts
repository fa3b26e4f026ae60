import { execFile, execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readSettings } from '../../../proxy/app/reload/settings-source.ts'
import { atEndOfFile } from '../../support/run/at-end.ts'
import { directoryWith } from '../../support/gateway/settings.ts'
import { makeTemporaryDirectory } from '../../support/run/temporary-directory.ts'

// A shell's `<(…)` and many keepers of secrets hand over a pipe. To open it again waits for whoever would write to it, and
// with it the whole gateway; if somebody just closes it, nothing is read.

function makePipe(): string {
  const path = join(makeTemporaryDirectory(), 'pipe')
  execFileSync('mkfifo', [path])
  return path
}

/** Another process opens the pipe, writes and closes it. Until somebody reads, it waits. */
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

test('an empty file does not take the place of one with limits, and one that was empty may stay so', async () => {
  const cwd = directoryWith('limits: []\n')
  const file = join(cwd, 'sluice.yaml')
  const { source } = readSettings({}, cwd)
  writeFileSync(file, '')
  expect(await source.load()).toEqual({ mistakes: [`${file}: is empty, but had limits before`] })
  const { source: ofEmpty } = readSettings({}, cwd)
  expect(await ofEmpty.load()).toHaveProperty('settings.limitsFile', undefined)
  writeFileSync(file, '# The built-in table is meant.\n')
  expect(await source.load()).toHaveProperty('settings.limitsFile', undefined)
})
