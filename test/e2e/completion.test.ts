import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { runHosted } from '../support/gateway/hosted-command.ts'
import { spawnCommand } from '../support/gateway/process.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'

const directory = makeTemporaryDirectory()
writeFileSync(join(directory, 'access log.gz'), '')
writeFileSync(join(directory, 'other.txt'), '')

beforeAll(async () => {
  const { status, stdout, stderr } = await runHosted(['completion', 'bash'])
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  writeFileSync(join(directory, 'completion.bash'), stdout)
})

/** The completions that bash offers for the last of these words, split as readline splits them. */
async function offeredByBash(words: readonly string[]): Promise<string[]> {
  // Calls the function that `complete` has registered as bash does.
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
    [
      ['sluice', 'presets', 'l'],
      ['login-protection', 'llm-gateway'],
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

test('completion of an unknown shell is wrong usage', async () => {
  expect(await runHosted(['completion', 'fish'])).toMatchObject({ status: 2, stdout: '' })
})
