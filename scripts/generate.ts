import { writeFileSync } from 'node:fs'
import { renderGenerated } from './reference.ts'

for (const [path, text] of await renderGenerated()) writeFileSync(path, text)
