import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'

export type RunOptions = { readonly config?: string; readonly upstream?: string; readonly port?: string }

/**
 * Starts the gateway in this process, as `node proxy/main.ts` does. The options override the variables. Resolves when the gateway listens;
 * it keeps running, and ends the process by itself.
 */
export async function run({ config, upstream, port }: RunOptions): Promise<void> {
  const given = { CONFIG_FILE: config, UPSTREAM_URL: upstream, PORT: port }
  for (const [variable, value] of Object.entries(given)) {
    if (value === undefined) continue
    process.env[variable] = value
    Reflect.deleteProperty(process.env, `SLUICE_${variable}`)
  }
  // The extension is `.js` if this is compiled.
  const gateway = new URL(`../main${extname(import.meta.filename)}`, import.meta.url)
  // Workers are started with this path. The gateway takes no arguments.
  process.argv = [process.execPath, fileURLToPath(gateway)]
  await import(gateway.href)
}
