import { readFileSync } from 'node:fs'
import module from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

// The memory at rest of a Node process that has loaded some modules, and does nothing:
//
//     npm run bench:rest -- node:http zod yaml prom-client pino
//
// It shows what a gateway's libraries take before it has any code of its own. Run it twice: the first run fills the compile cache. It is
// JavaScript, as the compiler that takes types out would be a third of the result.

module.enableCompileCache()
for (const name of process.argv.slice(2)) await import(name)
setFlagsFromString('--expose-gc')
runInNewContext('gc')({ type: 'major', flavor: 'last-resort' })
await sleep(500)
const status = readFileSync('/proc/self/status', 'latin1')
const megabytes = (field) =>
  ((Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1] ?? 0) * 1024) / 1e6).toFixed(1)
console.log(
  `${megabytes('VmRSS')} MB: ${megabytes('RssFile')} of Node's executable, which all its processes share, and ${megabytes('RssAnon')} of its own; ` +
    `${(process.memoryUsage().heapUsed / 1e6).toFixed(1)} of these are objects of JavaScript`,
)
