import type { ExplainedRequest } from '../../limits/explain/request-text.ts'
import { CommandError, printJson, status } from '../output.ts'
import { askSuccessfully, isRecord, type AdminOptions } from '../operate/admin-client.ts'
import { printExplanation, type PrintedExplanation } from './print.ts'

/**
 * Asks a running gateway to explain the request now.
 *
 * @returns the exit status: 1 if the request would be refused, or is answered before it reaches the rules
 */
export async function askToExplain(
  asked: ExplainedRequest,
  ip: string,
  options: AdminOptions,
): Promise<number> {
  const { method, target, host, headers, body } = asked
  const lines = new Map<string, string[]>()
  for (const [name, value] of headers) {
    const key = name.toLowerCase()
    lines.set(key, [...(lines.get(key) ?? []), value])
  }
  const explanation = await askSuccessfully(options, '/api/explain', 'outcome', {
    method,
    target,
    ...(host !== undefined && { host }),
    ip,
    headers: Object.fromEntries(lines),
    ...(body !== undefined && { body }),
  })
  if (!isExplanation(explanation))
    throw new CommandError(
      `what answers at ${options.admin} explains nothing: is it a gateway of this version?`,
      status.no,
    )
  if (options.json) printJson(explanation)
  else printExplanation(explanation, `from the gateway at ${options.admin}`)
  const passes = ['limited', 'forwarded'].includes(explanation.outcome) && !explanation.refusedBy
  return passes ? status.yes : status.no
}

function isExplanation(body: unknown): body is PrintedExplanation {
  return (
    isRecord(body) &&
    isRecord(body['client']) &&
    Array.isArray(body['rules']) &&
    Array.isArray(body['readings'])
  )
}
