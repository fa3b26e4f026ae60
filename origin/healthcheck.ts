import { checkHealth } from '../shared/healthcheck.ts'
import { loadOriginSettings } from './settings.ts'

const { settings } = loadOriginSettings(process.env)
checkHealth(settings.originHost, settings.originPort, '/health')
