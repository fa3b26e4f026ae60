import { join } from 'node:path'
import { cruise } from 'dependency-cruiser'

/** Draws the folders of the gateway and their imports as a Mermaid diagram, with one box for each folder of `proxy/`. */
export async function renderFolders(): Promise<string> {
  const { output } = await cruise(['proxy'], {
    baseDir: join(import.meta.dirname, '..'),
    includeOnly: '^proxy/',
    collapse: '^proxy/[^/]+',
    // Types count, as they do for .dependency-cruiser.js.
    tsPreCompilationDeps: true,
    outputType: 'mermaid',
  })
  if (typeof output !== 'string') throw new Error('dependency-cruiser returned no text')
  return `\`\`\`mermaid\n${sortEdges(output.trim())}\n\`\`\``
}

/** Sorts the edges: dependency-cruiser draws them in the order of the imports, which may change while the graph stays the same. */
function sortEdges(diagram: string): string {
  const lines = diagram.split('\n')
  const isEdge = (line: string): boolean => line.includes('-->')
  return [...lines.filter((line) => !isEdge(line)), ...lines.filter(isEdge).toSorted()].join('\n')
}
