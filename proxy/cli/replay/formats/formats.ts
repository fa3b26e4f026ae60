import { readCaddy, readNginx, readSluice, readTraefik, type JsonReader } from './json-lines.ts'
import type { ReadLine } from './logged-request.ts'
import { readTextLine } from './text-lines.ts'

export type LineReader = (line: string) => ReadLine

const jsonReaders: Readonly<Record<string, JsonReader>> = {
  sluice: readSluice,
  caddy: readCaddy,
  'traefik-json': readTraefik,
  'nginx-json': readNginx,
}

/** @param name one of `auto`, which looks at each line, `common`, `combined`, `traefik`, and the names of `jsonReaders` */
export function lineReader(name: string): LineReader {
  const json = Object.hasOwn(jsonReaders, name) ? jsonReaders[name] : undefined
  if (json) return (line) => readJsonLine(line, [json])
  if (name !== 'auto') return readTextLine
  const all = Object.values(jsonReaders)
  return (line) => (line.startsWith('{') ? readJsonLine(line, all) : readTextLine(line))
}

const unknown = { why: 'in no known format' }

function readJsonLine(line: string, readers: readonly JsonReader[]): ReadLine {
  let fields: unknown
  try {
    fields = JSON.parse(line)
  } catch {
    return { why: 'not JSON' }
  }
  if (typeof fields !== 'object' || fields === null) return unknown
  for (const read of readers) {
    const found = read(fields as Readonly<Record<string, unknown>>)
    if (found !== undefined) return found
  }
  return unknown
}
