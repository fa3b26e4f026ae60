import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { renderGenerated } from '../../scripts/generated-files.ts'

test('the JSON Schema and the tables of the reference are current: npm run generate', async () => {
  for (const [path, text] of await renderGenerated()) expect(readFileSync(path, 'utf8'), path).toBe(text)
})
