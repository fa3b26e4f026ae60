import {
  createCaddyReader,
  createNginxReader,
  readSluice,
  readTraefik,
  type JsonReader,
} from './json-lines.ts'
import type { ReadLine } from './logged-request.ts'
import { readTextLine } from './text-lines.ts'
import { isTime } from './times.ts'

export type LineReader = (line: string) => ReadLine

/** Creates the readers, by format name. Some readers learn from the lines of a log how to read later lines. */
function createJsonReaders(): Readonly<Record<string, JsonReader>> {
  return {
    sluice: readSluice,
    caddy: createCaddyReader(),
    'traefik-json': readTraefik,
    'nginx-json': createNginxReader(),
  }
}

/**
 * Makes a reader for the logs of one run.
 *
 * @param name one of `auto`, which looks at each line, `common`, `combined`, `traefik`, and the names of `createJsonReaders`
 */
export function lineReader(name: string): LineReader {
  const read = formatReader(name)
  return (line) => {
    const found = read(line)
    return typeof found === 'object' && 'timeMs' in found && !isTime(found.timeMs) ? outOfRange : found
  }
}

function formatReader(name: string): LineReader {
  const jsonReaders = createJsonReaders()
  const json = Object.hasOwn(jsonReaders, name) ? jsonReaders[name] : undefined
  if (json) return (line) => readJsonLine(line, [json])
  if (name !== 'auto') return readTextLine
  const all = Object.values(jsonReaders)
  return (line) => (line.startsWith('{') ? readJsonLine(line, all) : readTextLine(line))
}

/** The clock of the simulation follows the log, so one such line would move it for all following lines. */
const outOfRange = { why: 'the time is out of range' }
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
