import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { beforeAll, expect, test } from 'vitest'
import { spawnCommand } from '../support/gateway/process.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'

// Tests the output of `sluice completion zsh` in an interactive zsh. This test is not beside the one for bash, because few machines have a
// zsh.

const directory = makeTemporaryDirectory()
writeFileSync(join(directory, 'access log.gz'), '')

beforeAll(async () => {
  const sluice = spawnCommand(process.execPath, {}, [
    'scripts/run.js',
    'proxy/cli/main.ts',
    'completion',
    'zsh',
  ])
  expect([await sluice.exit, sluice.stderr()]).toEqual([0, ''])
  writeFileSync(join(directory, 'completion.zsh'), sluice.stdout())
})

/** Types this text into an interactive zsh, then the Tab key, and waits until `expected` is shown. */
async function completesInZsh(typed: string, expected: RegExp): Promise<void> {
  const zsh = spawn('script', ['-qfc', 'zsh -f -i', '/dev/null'], {
    cwd: directory,
    env: { PATH: process.env['PATH'], TERM: 'xterm', COLUMNS: '200' },
  })
  let shown = ''
  const shows = (pattern: RegExp): Promise<void> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        // Removes cursor movements and overwritten text.
        if (pattern.test(stripVTControlCharacters(shown).replaceAll(/.\x08/g, ''))) resolve()
      }
      zsh.stdout.on('data', look)
      zsh.once('close', () => reject(new Error(`zsh has ended, and has shown ${JSON.stringify(shown)}`)))
      look()
    })
  zsh.stdout.setEncoding('utf8').on('data', (text: string) => (shown += text))
  try {
    zsh.stdin.write(`PROMPT='rea''dy> '; stty cols 200; autoload -Uz compinit && compinit -D -u\n`)
    zsh.stdin.write('source ./completion.zsh; print load""ed\n')
    await shows(/loaded[^]*ready> /)
    shown = ''
    zsh.stdin.write(`${typed}\t`)
    await shows(expected)
  } finally {
    zsh.stdin.end()
    zsh.kill('SIGKILL')
  }
}

test.each([
  ['sluice valid', /sluice validate/],
  ['sluice replay --form', /--format=/],
  ['sluice replay --format=nginx', /=nginx-json/],
  ['sluice replay acc', /replay access\\ log\.gz/],
  ['sluice completion z', /completion zsh/],
  // With descriptions.
  ['sluice re', /replay +-- show what/],
])('zsh completes %s', completesInZsh)
