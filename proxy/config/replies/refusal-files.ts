import { resolve } from 'node:path'
import {
  problemAt,
  reasonOf,
  showValue,
  type PlaceOf,
  type Problem,
} from '../../../shared/settings/problems.ts'
import type { Refusal, Refusals } from '../../limits/replies.ts'
import type { RefusalSource, Rule } from '../../policy.ts'
import { withoutMarkBytes } from '../../../shared/settings/byte-order-mark.ts'
import { readRegularFileSync } from '../../../shared/settings/regular-file.ts'

/** Maximum size of a file, in KiB. The whole file is sent to each client that is over a limit. */
const MAX_KIB = 64

type Written = { readonly refusal?: RefusalSource | undefined; readonly limits?: readonly Rule[] | undefined }

/**
 * Reads the responses to refused requests, including their files.
 *
 * @param folder the folder of the settings file, from which relative paths start
 */
export function readRefusals(
  { refusal, limits = [] }: Written,
  placeOf: PlaceOf,
  folder: string,
): { readonly refusals: Refusals; readonly problems: readonly Problem[] } {
  const problems: Problem[] = []
  const read = (source: RefusalSource, path: readonly PropertyKey[]): Refusal => {
    const contentOf = (field: string, file: string): Buffer => {
      try {
        return withoutMarkBytes(readRegularFileSync(resolve(folder, file), MAX_KIB * 1024))
      } catch (error) {
        const text = `got ${showValue(file)}, needs a readable file of at most ${MAX_KIB} KiB (${reasonOf(error)})`
        problems.push(problemAt(placeOf([...path, field]), text))
        return Buffer.alloc(0)
      }
    }
    const { status, contentType, body, htmlFile, headers } = source
    return {
      status,
      contentType,
      body: 'text' in body ? Buffer.from(body.text) : contentOf('bodyFile', body.file),
      html: htmlFile === undefined ? undefined : contentOf('html', htmlFile),
      headers,
    }
  }
  const everyRule = refusal && read(refusal, ['refusal'])
  const ofRules = new Map(
    [...limits.entries()].flatMap(([index, rule]) =>
      rule.refusal ? [[rule.policy.name, read(rule.refusal, ['limits', index, 'refusal'])]] : [],
    ),
  )
  return { refusals: { everyRule, ofRules }, problems }
}
