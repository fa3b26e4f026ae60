import { writeFileSync } from 'node:fs'
import { renderManifests } from './plain-manifests.ts'

for (const [path, text] of await renderManifests()) writeFileSync(path, text)
