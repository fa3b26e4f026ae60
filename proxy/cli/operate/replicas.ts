import { formatTable, print, printJson, status as exit } from '../output.ts'
import { askSuccessfully, recordsIn, type AdminOptions } from './admin-client.ts'

/** Lists the gateways on the same Redis, each with the hashes of its processes' tables. */
export async function listReplicas(options: AdminOptions): Promise<number> {
  const body = await askSuccessfully(options, '/api/replicas', 'replicas')
  if (options.json) printJson(body)
  else if (body['scope'] === 'replica')
    print('this gateway counts alone: no Redis is configured, or it does not answer')
  else {
    const rows = recordsIn(body, 'replicas').map(({ host, self, status, version, tableHashes, workers }) => [
      `${String(host)}${self === true ? ' (this one)' : ''}`,
      String(status),
      Array.isArray(tableHashes) ? tableHashes.join(', ') : '-',
      String(workers),
      String(version),
    ])
    print(formatTable(['host', 'status', 'table', '>processes', 'version'], rows))
  }
  return exit.yes
}
