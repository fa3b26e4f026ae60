import { findInRepository, wordings } from './plain-words.ts'

// Run by `npm run lint`: lists each occurrence of a wording of scripts/plain-words.ts in docs, comments, messages and test titles.

const findings = findInRepository()
for (const { path, line, text, wording } of findings)
  console.error(`${path}:${line}: ${wording.name} (write ${wording.instead}): ${text}`)
for (const { name } of wordings) {
  const count = findings.filter(({ wording }) => wording.name === name).length
  console.log(`${name}: ${count}`)
}
process.exitCode = findings.length > 0 ? 1 : 0
