import { checkHealth } from '../shared/healthcheck.ts'
import { readAdminAddress } from './config/written/admin-address.ts'

const { host, port } = readAdminAddress(process.env, process.cwd()) ?? (await readAllSettings())
checkHealth(host, port, '/readyz')

async function readAllSettings(): Promise<{ host: string; port: number }> {
  const { loadGatewaySettings } = await import('./config/settings.ts')
  const { settings } = loadGatewaySettings(process.env, process.cwd())
  return { host: settings.adminHost, port: settings.adminPort }
}
