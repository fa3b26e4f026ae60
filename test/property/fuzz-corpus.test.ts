import { globSync, readFileSync } from 'node:fs'
import { join, sep } from 'node:path'
import { describe, expect, test } from 'vitest'

// Inputs with which the coverage-guided fuzzer starts, and inputs that it has found: `npm run fuzz:coverage`.

const folder = join(import.meta.dirname, '../fuzz')
const inputs = globSync('{corpus,crashes}/*/*', { cwd: folder })
const targets = [...new Set(inputs.map((path) => path.split(sep)[1] ?? ''))]

describe.each(targets)('the fuzz target %s', (target) => {
  const ofTarget = inputs.filter((path) => path.split(sep)[1] === target)

  test.each(ofTarget)('the target takes %s', async (path) => {
    const { fuzz } = (await import(join(folder, 'targets', `${target}.ts`))) as {
      fuzz: (bytes: Buffer) => void
    }
    expect(() => fuzz(readFileSync(join(folder, path)))).not.toThrow()
  })
})
