import { spawnSync } from 'node:child_process'

/**
 * The files that the change touches; undefined if git cannot tell. The change is the uncommitted diff, and the commits since `CI_BASE`.
 * Without `CI_BASE` it is the commits since the base branch of the pull request, or otherwise since the previous commit.
 */
export function changedFiles(): Set<string> | undefined {
  const branch = process.env['GITHUB_BASE_REF']
  const base = process.env['CI_BASE'] || (branch ? `origin/${branch}...HEAD` : 'HEAD^')
  const committed = git('diff', '--name-only', ...(base.includes('...') ? [base] : [base, 'HEAD']))
  const others = git('status', '--porcelain', '--untracked-files=all')
  if (committed === undefined || others === undefined) return undefined
  return new Set([...committed, ...others.map((line) => line.slice(3).replace(/^.* -> /, ''))])
}

function git(...args: string[]): string[] | undefined {
  const { status, stdout } = spawnSync('git', args, { encoding: 'utf8' })
  return status === 0 ? stdout.split('\n').filter((line) => line !== '') : undefined
}
