import { restartWithGatewayOptions, setGatewayFlags } from '../shared/v8-gc.ts'

restartWithGatewayOptions()
// Set the flags before the rest is compiled, because Node's compile cache holds code for one set of flags.
setGatewayFlags()
await import('./app/start.ts')
