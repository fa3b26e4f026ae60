import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { commandOf } from '../support/gateway/process.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'

/** Runs a command whose output goes to a full disk, or to a program that exits at once. */
function run(
  script: string,
  words: readonly string[],
  output: string,
): { status: number | null; stderr: string } {
  const { args, env } = commandOf(script)
  const command = [process.execPath, ...args, ...words].map((word) => `'${word}'`).join(' ')
  const cwd = makeTemporaryDirectory()
  const { status, stderr } = spawnSync('bash', ['-c', `set -o pipefail; ${command} ${output}`], {
    cwd,
    env: { ...process.env, ...env, ORIGIN_DB: join(cwd, 'origin.db') },
    encoding: 'utf8',
  })
  return { status, stderr }
}

const commands: [string, string[]][] = [
  ['proxy/cli/main.ts', ['presets', 'wordpress']],
  ['proxy/cli/main.ts', ['version', '--json']],
  ['origin/keys.ts', ['create', '--project', 'Shop', '--json']],
  ['origin/keys.ts', ['list']],
]

// Such as `keys create > key.json`: the key is not shown again.
test.runIf(process.platform === 'linux').each(commands)(
  '%s %j fails if its output cannot be written, and says so in a line',
  (script, words) => {
    expect(run(script, words, '> /dev/full')).toEqual({
      status: 1,
      stderr: 'error: standard output cannot be written (ENOSPC: no space left on device)\n',
    })
  },
)

test.each(commands)('%s %j ends quietly if nobody reads its output', (script, words) => {
  expect(run(script, words, '| true')).toEqual({ status: 0, stderr: '' })
})
