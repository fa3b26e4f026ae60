import { formatCountOf, print, printError, printJson, status as exit } from '../output.ts'
import { askAdmin, expectMember, isRecord, refusalOf, type AdminOptions } from './admin-client.ts'

/**
 * Reloads the settings of a gateway. Prints the changes, or the mistakes in the format of `validate`.
 *
 * @returns the exit status: 1 if the settings are invalid
 */
export async function reloadGateway(options: AdminOptions): Promise<number> {
  const reply = await askAdmin(options, '/api/reload', {})
  const mistakes = isRecord(reply.body) ? textsIn(reply.body, 'mistakes') : []
  if (reply.status === 422 && mistakes.length > 0) {
    if (options.json) printJson(reply.body)
    else for (const mistake of mistakes) printError(mistake)
    return exit.no
  }
  if (reply.status !== 200) throw refusalOf(reply)
  const body = expectMember(reply.body, 'outcome', options)
  if (options.json) printJson(body)
  else printReloaded(body)
  return exit.yes
}

function printReloaded(body: Readonly<Record<string, unknown>>): void {
  for (const warning of textsIn(body, 'warnings')) printError(`warning: ${warning}`)
  const what = formatCountOf(Number(body['rules']), 'rule')
  print(`${String(body['outcome'])}: ${what}, table ${String(body['tableHash'])}`)
  const names = { added: 'added', changed: 'changed', removed: 'removed', restart: 'needs a restart' }
  for (const [field, label] of Object.entries(names)) {
    const found = textsIn(body, field)
    if (found.length > 0) print(`  ${label}: ${found.join(', ')}`)
  }
  const routes = isRecord(body['routes']) ? body['routes'] : {}
  for (const field of ['added', 'changed', 'removed']) {
    const found = textsIn(routes, field)
    if (found.length > 0) print(`  routes ${field}: ${found.join(', ')}`)
  }
}

function textsIn(body: Readonly<Record<string, unknown>>, field: string): readonly string[] {
  const list = body[field]
  return Array.isArray(list) ? list.filter((text) => typeof text === 'string') : []
}
