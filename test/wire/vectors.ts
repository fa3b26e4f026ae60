import type { Vector } from './vector.ts'
import { chunks } from './vectors/chunks.ts'
import { connection } from './vectors/connection.ts'
import { fields } from './vectors/fields.ts'
import { framing } from './vectors/framing.ts'
import { host } from './vectors/host.ts'
import { pipelines } from './vectors/pipelines.ts'
import { requestLine } from './vectors/request-line.ts'
import { semantics } from './vectors/semantics.ts'
import { targets } from './vectors/targets.ts'
import { upgrades } from './vectors/upgrades.ts'

/** All vectors of requests, by what they are about. docs/http.md refers to them as `theme: name`. */
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
}
