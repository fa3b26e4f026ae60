import { checkHealth } from '../shared/healthcheck.ts'
import { readAdminAddress } from './config/written/admin-address.ts'

const { host, port } = readAdminAddress(process.env, process.cwd()) ?? (await parseFile())
checkHealth(host, port, '/readyz')

async function parseFile(): Promise<{ readonly host: string; readonly port: number }> {
  const { parseAdminAddress } = await import('./config/written/parsed-admin-address.ts')
  return parseAdminAddress(process.env, process.cwd())
}
