import { writeFileSync } from 'node:fs'
import { renderGenerated } from './generated-files.ts'

for (const [path, text] of await renderGenerated()) writeFileSync(path, text)
