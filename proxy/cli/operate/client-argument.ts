import { withoutMark } from '../../../shared/settings/byte-order-mark.ts'
import { reasonOf, showValue } from '../../../shared/settings/problems.ts'
import { isHashedKey } from '../../limits/keys/partition-key.ts'
import { plainParts } from '../../policy/partition.ts'
import { readFileArgument } from '../file-argument.ts'
import { CommandError, status } from '../output.ts'

/**
 * Converts the name of a client on the command line to the format of the admin interface:
 * - an address, or the value of the only part of the rule's key: unchanged
 * - `global`, or `h:…` from a list of limited clients
 * - `PART=VALUE`, one for each part of the rule's key. The value `@FILE` is read from the file, so that a secret need not be on the command
 *   line, which other users of the machine can see
 */
export async function readClient(args: readonly string[]): Promise<unknown> {
  const [only = ''] = args
  if (args.length === 1 && !only.includes('=')) {
    if (only === 'global') return { global: true }
    return isHashedKey(only) ? { id: only } : readValue(only)
  }
  const parts = new Map<string, string | true>()
  for (const arg of args) {
    const equals = arg.indexOf('=')
    const part = arg.slice(0, equals).toLowerCase()
    if (equals < 1 || parts.has(part))
      throw new CommandError(`a client needs PART=VALUE, each part once, got ${showValue(arg)}`, status.usage)
    if (!partForm.test(part))
      throw new CommandError(
        `a client needs PART=VALUE, with a part of the rule's key such as ip or header:x-api-key, got the part ${showValue(part)}`,
        status.usage,
      )
    const value = await readValue(arg.slice(equals + 1))
    parts.set(part, part === 'global' ? true : value)
  }
  return Object.fromEntries(parts)
}

/** The syntax of part names in a rule's `key`. */
const partForm = new RegExp(String.raw`^(?:${plainParts.join('|')}|ip/\d+/\d+|[a-z]+:.+)$`)

async function readValue(text: string): Promise<string> {
  if (!text.startsWith('@')) return text
  const path = text.slice(1)
  try {
    return withoutMark(await readFileArgument(path)).replace(/\r?\n$/, '')
  } catch (error) {
    throw new CommandError(
      `cannot read ${path === '-' ? 'standard input' : showValue(path)} (${reasonOf(error)})`,
      status.usage,
    )
  }
}

/** Writes the client of a reply in the form that `readClient` accepts. */
export function writeClient(client: unknown): string {
  if (typeof client !== 'object' || client === null) return ''
  return Object.entries(client)
    .map(([part, value]) =>
      part === 'id' || part === 'ip' ? String(value) : value === true ? part : `${part}=${String(value)}`,
    )
    .join(' ')
}
