import { join } from 'node:path'
import { cruise } from 'dependency-cruiser'

/** The folders of the gateway and their imports, as a Mermaid diagram; each folder of `proxy/` is one box. */
export async function renderFolders(): Promise<string> {
  const { output } = await cruise(['proxy'], {
    baseDir: join(import.meta.dirname, '..'),
    includeOnly: '^proxy/',
    collapse: '^proxy/[^/]+',
    // Types count, as they do for .dependency-cruiser.js.
    tsPreCompilationDeps: true,
    outputType: 'mermaid',
  })
  if (typeof output !== 'string') throw new Error('dependency-cruiser has drawn nothing')
  return `\`\`\`mermaid\n${output.trim()}\n\`\`\``
}
