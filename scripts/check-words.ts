import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { findWordings, wordings } from './plain-words.ts'

// Run by `npm run lint`: lists each wording of scripts/plain-words.ts in docs, comments, messages and test titles.

const files = execFileSync(
  'git',
  [
    'ls-files',
    '--cached',
    '--others',
    '--exclude-standard',
    '--',
    '*.md',
    '*.ts',
    '*.js',
    '*.css',
    '*.html',
    '*.yaml',
  ],
  { encoding: 'utf8' },
)
// The wordings themselves.
const excluded = new Set(['scripts/plain-words.ts', 'test/repo/plain-words.test.ts'])
const findings = files
  .split('\n')
  .filter((path) => path !== '' && !excluded.has(path))
  .flatMap((path) => findWordings(readFileSync(path, 'utf8')).map((finding) => ({ path, ...finding })))

for (const { path, line, text, wording } of findings)
  console.error(`${path}:${line}: ${wording.name} (write ${wording.instead}): ${text}`)
for (const { name } of wordings) {
  const count = findings.filter(({ wording }) => wording.name === name).length
  console.log(`${name}: ${count}`)
}
process.exitCode = findings.length > 0 ? 1 : 0
