import { writeClient } from '../../operate/client-argument.ts'
import { formatCount, formatTable, print } from '../../output.ts'
import { FITTED_PART, type SuggestedRule, type Suggestion } from '../suggest.ts'

/** Prints the suggestions, each with its table for pasting. */
export function printSuggestions(suggestions: readonly (Suggestion & { readonly table: string })[]): void {
  print(
    `\nlimits made from the first ${Math.round(FITTED_PART * 100)} % of the time, and tried on the remaining time:`,
  )
  for (const { share, rules, table } of suggestions) {
    print(`\nrefusing at most ${share * 100} % of the clients of a rule`)
    if (rules.length === 0) {
      print(
        'nothing to suggest: no request counted under a rule with a fixed or sliding window and without countStatus and cost',
      )
      continue
    }
    print(
      formatTable(
        [
          'rule',
          '>limit',
          '>clients',
          '>over',
          'they are',
          '>clients later',
          '>refused',
          '>requests later',
          '>refused',
        ],
        rules.map(cellsOf),
      ),
    )
    for (const { name, clients } of rules) if (clients * share < 1) print(fewClients(name, clients, share))
    print(`\n${table.trimEnd()}`)
  }
}

/**
 * Describes a limit calculated from few clients. Since none of them may exceed it, the limit is the peak of the busiest client, even if
 * this client is an abuser.
 */
function fewClients(name: string, clients: number, share: number): string {
  return (
    `${name}: ${share * 100} % of ${formatCount(clients)} clients is less than one, so the limit is that of the busiest: ` +
    'a longer log has more clients'
  )
}

function cellsOf({ name, requests, clients, clientsOver, over, heldOut }: SuggestedRule): string[] {
  const shown = over.slice(0, 3).map(({ client, peak }) => `${writeClient(client)} (${formatCount(peak)})`)
  return [
    name,
    formatCount(requests),
    formatCount(clients),
    formatCount(clientsOver),
    shown.join(', ') + (clientsOver > shown.length ? ', …' : ''),
    formatCount(heldOut.clients),
    formatCount(heldOut.clientsRefused),
    formatCount(heldOut.requests),
    formatCount(heldOut.refused),
  ]
}
