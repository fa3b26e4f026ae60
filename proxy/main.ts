import { createLog } from '../shared/log.ts'
import { closeOnSignal } from '../shared/shutdown.ts'
import { composeGateway } from './compose.ts'
import { loadGatewaySettings } from './config/settings.ts'

const { settings, warnings } = loadGatewaySettings(process.env, process.cwd())
const log = createLog('gateway', settings.logLevel)
for (const warning of warnings) log.warn(warning)

const gateway = composeGateway(settings, log)
log.info(await gateway.listen(), 'listening')
closeOnSignal(gateway, log)
