import { restartWithGatewayOptions, setGatewayFlags } from '../shared/v8-gc.ts'

restartWithGatewayOptions()
// Before the rest is compiled: Node's compile cache holds code for one set of flags.
setGatewayFlags()
await import('./app/start.ts')
