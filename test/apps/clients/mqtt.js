import mqtt from 'mqtt'
import { playMqtt } from './mqtt-scenario.js'

// MQTT.js in Node. Arguments: origin, protocol, the path.

const [origin, , path] = process.argv.slice(2)
console.log(JSON.stringify(await playMqtt(mqtt, `${origin.replace('http', 'ws')}/${path}`)))
process.exit(0)
