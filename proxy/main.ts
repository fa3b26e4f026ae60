import { onHangup } from '../shared/hangup.ts'
import { restartWithGatewayOptions, setGatewayFlags } from '../shared/v8-gc.ts'

restartWithGatewayOptions()
// Loading the rest takes most of the start. Without a listener, a SIGHUP would end the process meanwhile.
onHangup(() => undefined)
// Set the flags before the rest is compiled, because Node's compile cache holds code for one set of flags.
setGatewayFlags()
await import('./app/start.ts')
