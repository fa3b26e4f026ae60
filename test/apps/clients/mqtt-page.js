import { join } from 'node:path'
import { protocolsOf, withPage } from './browser.js'
import { playMqtt } from './mqtt-scenario.js'

// MQTT.js in a page that came over HTTP/2. Arguments: origin, protocol, the path.

const [origin, protocol, path] = process.argv.slice(2)

await withPage(protocol, async (page) => {
  // Told where the client fails.
  page.on('console', (message) => console.error(message.text()))
  await page.goto(origin)
  await page.addScriptTag({ path: join(import.meta.dirname, '../node_modules/mqtt/dist/mqtt.min.js') })
  const seen = await page.evaluate(`(${playMqtt})(mqtt, '${origin.replace('http', 'ws')}/${path}')`)
  return { ...seen, protocols: await protocolsOf(page) }
})
