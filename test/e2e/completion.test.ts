import { spawn, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { beforeAll, describe, expect, test } from 'vitest'
import { runHosted } from '../support/hosted-command.ts'
import { spawnCommand } from '../support/process.ts'
import { makeTemporaryDirectory } from '../support/temporary-directory.ts'

const directory = makeTemporaryDirectory()
writeFileSync(join(directory, 'access log.gz'), '')
writeFileSync(join(directory, 'other.txt'), '')

beforeAll(async () => {
  for (const shell of ['bash', 'zsh']) {
    const { status, stdout, stderr } = await runHosted(['completion', shell])
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    writeFileSync(join(directory, `completion.${shell}`), stdout)
  }
})

/** What bash offers for the last of these words, which it has split as readline does. */
async function offeredByBash(words: readonly string[]): Promise<string[]> {
  // The function that `complete` has registered is called as bash calls it.
  const script = `source ./completion.bash
[[ $(complete -p sluice) =~ -F\\ ([^ ]+) ]] && COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
compopt() { :; }
"\${BASH_REMATCH[1]}" sluice "\${COMP_WORDS[COMP_CWORD]}" "\${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "\${COMPREPLY[@]}"`
  const bash = spawnCommand('bash', {}, ['--norc', '-uc', script, 'bash', ...words], { cwd: directory })
  expect([await bash.exit, bash.stderr()]).toEqual([0, ''])
  return bash
    .stdout()
    .split('\n')
    .filter((word) => word !== '')
}

describe('bash', () => {
  test.each([
    [
      ['sluice', 're'],
      ['replay', 'replicas', 'reload', 'reset'],
    ],
    [['sluice', '--'], ['--help']],
    [['sluice', 'replay', '--f'], ['--format']],
    [
      ['sluice', 'replay', '--format', 'c'],
      ['common', 'combined', 'caddy'],
    ],
    [
      ['sluice', 'replay', '--format', '=', 'tr'],
      ['traefik', 'traefik-json'],
    ],
    [['sluice', 'replay', 'acc'], ['access log.gz']],
    [['sluice', 'replay', '--config', 'o'], ['other.txt']],
    [['sluice', 'replay', '--host', ''], []],
    [
      ['sluice', 'completion', ''],
      ['bash', 'zsh'],
    ],
    [['sluice', 'help', 'val'], ['validate']],
    [['sluice', 'status', ''], []],
    [['sluice', 'nonsense', '-'], []],
  ])('%j: %j', async (words, expected) => {
    const offered = await offeredByBash(words)
    expect(offered.sort()).toEqual([...expected].sort())
  })

  test('all formats after an equals sign', async () => {
    expect(await offeredByBash(['sluice', 'replay', '--format', '='])).toContain('nginx-json')
  })
})

/** What an interactive zsh has shown when this is typed, and then the tabulator key, until `expected` is shown. */
async function completesInZsh(typed: string, expected: RegExp): Promise<void> {
  const zsh = spawn('script', ['-qfc', 'zsh -f -i', '/dev/null'], {
    cwd: directory,
    env: { PATH: process.env['PATH'], TERM: 'xterm', COLUMNS: '200' },
  })
  let shown = ''
  const shows = (pattern: RegExp): Promise<void> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        // Without what moves the cursor and what it draws over.
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

const hasZsh = ['zsh', 'script'].every((program) => spawnSync(program, ['--version']).status === 0)

describe.skipIf(!hasZsh)('zsh', () => {
  test.each([
    ['sluice valid', /sluice validate/],
    ['sluice replay --form', /--format=/],
    ['sluice replay --format=nginx', /=nginx-json/],
    ['sluice replay acc', /replay access\\ log\.gz/],
    ['sluice completion z', /completion zsh/],
    // With what they do.
    ['sluice re', /replay +-- say what/],
  ])('completes %s', { timeout: 20_000 }, completesInZsh)
})

test('another shell is wrong usage', async () => {
  expect(await runHosted(['completion', 'fish'])).toMatchObject({ status: 2, stdout: '' })
})
