import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { nearestWord } from '../../../shared/settings/did-you-mean.ts'
import { createLog, type Log } from '../../../shared/log.ts'
import { SettingsError } from '../../../shared/settings/settings-error.ts'
import { composeAdmin, operatedAlone } from '../../app/admin.ts'
import { Reloader } from '../../app/reload/reloader.ts'
import { composeServing } from '../../app/serving/compose.ts'
import type { Serving } from '../../app/serving/serving.ts'
import { hashTable } from '../../config/reload/table-hash.ts'
import { loadGatewaySettings, type GatewaySettings } from '../../config/settings.ts'
import type { SecretName, Sluice, SluiceOptions } from './sluice.ts'
import type { SluiceYaml } from '../../config/written/sluice-yaml.ts'

/**
 * Defaults for tests: free ports on 127.0.0.1, no log, immediate shutdown, and a long timeout for Redis, so that counts are exact even on a
 * busy machine. The memory for counters is allocated at the start: for the gateway's own default, a million of them, that would be 70 MB or
 * more for each algorithm, and where many gateways are started one after the other, 0.1 s of CPU for each.
 */
const defaults: SluiceYaml = {
  port: 0,
  host: '127.0.0.1',
  adminPort: 0,
  adminHost: '127.0.0.1',
  logLevel: 'silent',
  shutdownGrace: '0s',
  storeTimeout: '5s',
  storeMaxKeys: 100_000,
}

const optionNames = ['upstream', 'limits', 'clock', 'secrets', 'settings'] satisfies (keyof SluiceOptions)[]
const secretNames = ['DEVICE_SECRET', 'WEBHOOK_SECRET', 'REDIS_URL', 'ADMIN_TOKEN'] satisfies SecretName[]

/** Starts the gateway of `startSluice`. */
export async function startHere(options: SluiceOptions): Promise<Sluice> {
  const settings = readOptions(options)
  const log = createLog('gateway', settings.logLevel)
  const serving = await composeServing(settings, log, {
    readNode: () => Promise.resolve([]),
    ...(options.clock && { now: () => options.clock?.now() ?? 0 }),
  })
  const admin = composeAdminOf(serving, settings, log)
  const close = async (): Promise<void> => {
    await serving.close()
    await admin.close()
  }
  try {
    const adminPort = await admin.listen()
    const address = await serving.listen()
    if (!address) throw new Error('the gateway was closed before it listened')
    return {
      url: `${settings.tlsCertFile === undefined ? 'http' : 'https'}://${writeHost(address.address)}:${address.port}`,
      port: address.port,
      adminUrl: `http://${writeHost(settings.adminHost)}:${adminPort}`,
      reset: () => reset(serving, settings),
      close,
      [Symbol.asyncDispose]: close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

function readOptions(options: SluiceOptions): GatewaySettings {
  const mistakes = mistakesInOptions(options)
  if (mistakes.length > 0) throw new SettingsError(mistakes)
  const { upstream, limits, clock, secrets, settings: others } = options
  const written = { ...defaults, ...others, upstream, ...(limits && { limits }) }
  const folder = mkdtempSync(join(tmpdir(), 'sluice-'))
  const file = join(folder, 'sluice.yaml')
  let settings: GatewaySettings
  try {
    // JSON is YAML.
    writeFileSync(file, JSON.stringify(written))
    // The user has no settings file, so relative paths start from the working directory.
    settings = loadGatewaySettings({ ...secrets, CONFIG_FILE: file }, process.cwd(), process.cwd()).settings
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error
    throw new SettingsError(error.problems.map((text) => nameOptions(text.replace(`${file}:1: `, ''))))
  } finally {
    rmSync(folder, { recursive: true })
  }
  if (clock && settings.redisUrl !== undefined)
    throw new SettingsError(['clock: with redisUrl the time is that of Redis'])
  return settings
}

/** Finds what the types refuse: JavaScript does not check them. */
function mistakesInOptions(options: Partial<SluiceOptions> | null | undefined): string[] {
  const given = options ?? {}
  const { upstream, clock, secrets, settings } = given
  return [
    ...unknownNames('option', given, optionNames),
    ...unknownNames('secret', secrets, secretNames),
    ...mistakesInSettings(settings),
    // The gateway would take its default, and a test would pass or fail by what happens to listen there.
    ...(upstream === undefined ? ['upstream: missing, needs the URL of the backend'] : []),
    ...(clock && typeof clock.now !== 'function' ? ['clock: needs a clock from createClock()'] : []),
  ]
}

function mistakesInSettings(settings: object = {}): string[] {
  const mistakes = {
    upstream: 'is an option of its own, next to settings',
    limits: 'is an option of its own, next to settings',
    workers: 'the gateway is embedded in this process, and has no workers',
  }
  return Object.entries(mistakes).flatMap(([name, text]) =>
    name in settings ? `settings.${name}: ${text}` : [],
  )
}

function unknownNames(kind: string, given: object = {}, known: readonly string[]): string[] {
  return Object.keys(given)
    .filter((name) => !known.includes(name))
    .map((name) => {
      const near = nearestWord(name, known)
      const hint =
        near === undefined ? '; settings of sluice.yaml go into settings' : `, did you mean ${near}?`
      return `${name}: unknown ${kind}${hint}`
    })
}

/** Rewrites what a message says about the environment, which is not read, and about lines of a file, which the user does not have. */
function nameOptions(problem: string): string {
  return problem
    .replace(
      /\b(DEVICE_SECRET|WEBHOOK_SECRET|REDIS_URL|ADMIN_TOKEN) in the environment(?: \(or \w+_FILE\))?/,
      '$1 in secrets',
    )
    .replace(
      /, set \w+ in the environment instead$/,
      ', which is a variable of the environment and not read here',
    )
    .replace(/\bthe (rule|route) on line 1 has/, 'another $1 has')
    .replace(
      /^the variable (\w+) is not set: .*/,
      '${$1} stands for a variable of the environment, which is not read here: for the text, write $$${$1}',
    )
}

function composeAdminOf(
  serving: Serving,
  settings: GatewaySettings,
  log: Log,
): ReturnType<typeof composeAdmin> {
  const source = {
    written: settings,
    load: () => Promise.resolve({ settings, warnings: [] }),
    watch: () => () => undefined,
    signature: () => '',
  }
  const admin = composeAdmin(settings, log, {
    ...operatedAlone(serving),
    reloader: new Reloader({
      running: settings,
      source,
      prepare: (change) => serving.prepare(change.settings, change.tableHash),
      changed: () => admin.tableChanged(),
      log,
    }),
  })
  return admin
}

/** Clears all counters by removing all rules, which drops their counters, and adding them again. */
async function reset(serving: Serving, settings: GatewaySettings): Promise<void> {
  if (settings.redisUrl !== undefined) throw new Error('reset: the counters are in Redis')
  const { entries } = serving.clients
  for (const kind of ['ban', 'override'] as const)
    for (const { id } of await entries.list(kind)) await entries.remove(id)
  for (const rules of [[], settings.rules]) {
    const next = { ...settings, rules }
    const prepared = await serving.prepare(next, hashTable(next))
    await prepared.commit()
  }
}

function writeHost(address: string): string {
  return address.includes(':') ? `[${address}]` : address
}
