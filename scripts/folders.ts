import { join } from 'node:path'
import { cruise, type ICruiseOptions } from 'dependency-cruiser'
import rules from '../.dependency-cruiser.js'

const root = join(import.meta.dirname, '..')

/** The folders of the gateway and their imports, as a Mermaid diagram; each folder of `proxy/` is one box. */
export async function renderFolders(): Promise<string> {
  const options: ICruiseOptions = {
    ...rules.options,
    baseDir: root,
    includeOnly: '^proxy/',
    collapse: '^proxy/[^/]+',
    outputType: 'mermaid',
  }
  const { output } = await cruise(['proxy'], options)
  return `\`\`\`mermaid\n${String(output).trim()}\n\`\`\``
}
