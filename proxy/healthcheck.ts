import { checkHealth } from '../shared/healthcheck.ts'
import { loadGatewaySettings } from './config/settings.ts'

const { settings } = loadGatewaySettings(process.env, process.cwd())
checkHealth(settings.adminHost, settings.adminPort, '/readyz')
