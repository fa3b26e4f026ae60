import type { Vector } from './vector.ts'
import { advisoriesChunks } from './vectors/advisories-chunks.ts'
import { advisoriesFraming } from './vectors/advisories-framing.ts'
import { advisories } from './vectors/advisories.ts'
import { chunks } from './vectors/chunks.ts'
import { connection } from './vectors/connection.ts'
import { fields } from './vectors/fields.ts'
import { framing } from './vectors/framing.ts'
import { host } from './vectors/host.ts'
import { pipelines } from './vectors/pipelines.ts'
import { requestLine } from './vectors/request-line.ts'
import { semantics } from './vectors/semantics.ts'
import { targets } from './vectors/targets.ts'
import { techniques } from './vectors/techniques.ts'
import { upgrades } from './vectors/upgrades.ts'

/** All vectors of requests by theme. docs/http.md refers to them as `theme: name`. */
export const vectorsByTheme: Readonly<Record<string, readonly Vector[]>> = {
  'request line': requestLine,
  target: targets,
  host,
  fields,
  framing,
  chunks,
  connection,
  semantics,
  pipelines,
  upgrades,
  'advisories on framing': advisoriesFraming,
  'advisories on chunks': advisoriesChunks,
  advisories,
  techniques,
}
