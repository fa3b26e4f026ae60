import { setImmediate } from 'node:timers/promises'
import type { Log } from '../../../shared/log.ts'
import { listFilesOf } from '../../config/clients/list-files.ts'
import type { GatewaySettings } from '../../config/settings.ts'
import { createTokens, type Tokens } from '../../limits/keys/tokens/tokens.ts'
import type { Telemetry } from '../../telemetry/telemetry.ts'
import type { Crowdsec } from '../addresses/crowdsec.ts'
import { LiveGeo } from '../addresses/live-geo.ts'
import { LiveLists } from '../addresses/live-lists.ts'
import type { AskForKept } from '../workers/kept-files.ts'
import { listOfFile } from '../workers/kept-lists.ts'
import type { ReadFiles } from './request-handler.ts'
import { currentRules } from './current-rules.ts'

/** How long the start waits for the key set, so that the first requests are counted correctly. */
const KEYS_AT_START_MS = 1_000

export type TableFilesOptions = {
  readonly crowdsec: Crowdsec | undefined
  readonly askForKept: AskForKept | undefined
  readonly telemetry: Telemetry
  readonly log: Log
  /** Monotonic milliseconds. */
  readonly now: () => number
}

export type PreparedFiles = {
  readonly read: ReadFiles
  /** Call this when the table takes effect. */
  commit(): void
  /** Call this if the table will not take effect. */
  abort(): void
}

/** The files and key sets that a table names: lists of addresses, databases of countries, keys of tokens. */
export class TableFiles {
  readonly #options: TableFilesOptions
  readonly #lists: LiveLists
  readonly #geo: LiveGeo
  #tokens: Tokens | undefined

  constructor(options: TableFilesOptions) {
    const { crowdsec, askForKept, telemetry, log } = options
    this.#options = options
    this.#lists = new LiveLists(log, {
      crowdsec: crowdsec?.table,
      async askForKept(location) {
        const file = await askForKept?.('list', location)
        return file && listOfFile(file)
      },
    })
    this.#geo = new LiveGeo(log, {
      askForKept: async (location) => (await askForKept?.('geoip', location))?.columns[0],
    })
    telemetry.observeLists(() => this.#lists.readUse())
    telemetry.observeGeo(() => this.#geo.readUse())
  }

  /** The reader of tokens of the current table; undefined if no rule counts by tokens. */
  get tokens(): Tokens | undefined {
    return this.#tokens
  }

  /** Reads the files of the table that the gateway starts with. @throws {SettingsError} */
  async readFirst(settings: GatewaySettings): Promise<ReadFiles> {
    const lists = await this.#lists.prepare(listFilesOf(settings))
    lists.commit()
    const geo = await this.#geo.prepare(settings.geoip)
    geo.commit()
    this.#tokens = await this.#readTokens(settings)
    return { lists: lists.lists, geo: geo.geo, tokens: this.#tokens?.reader }
  }

  /**
   * Reads the files of another table that are new or have changed.
   *
   * @throws {SettingsError}
   */
  async prepare(next: GatewaySettings): Promise<PreparedFiles> {
    await setImmediate()
    const lists = await this.#lists.prepare(listFilesOf(next))
    const geo = await this.#geo.prepare(next.geoip)
    const tokens = await this.#readTokens(next)
    await tokens?.ready(KEYS_AT_START_MS)
    return {
      read: { lists: lists.lists, geo: geo.geo, tokens: tokens?.reader },
      commit: () => {
        lists.commit()
        geo.commit()
        // Requests that began under the old table still read their tokens with its keys.
        if (this.#tokens?.keySet !== tokens?.keySet) this.#tokens?.close()
        this.#tokens = tokens
      },
      abort: () => {
        if (tokens?.keySet !== this.#tokens?.keySet) tokens?.close()
      },
    }
  }

  #readTokens(settings: GatewaySettings): Promise<Tokens | undefined> {
    const { telemetry, log, now } = this.#options
    const reading = { telemetry, log, now, wallNow: Date.now }
    return createTokens(settings.jwt, currentRules(settings), reading, this.#tokens)
  }

  /** Resolves when the key set has been loaded, or after a short wait. */
  async ready(): Promise<void> {
    await this.#tokens?.ready(KEYS_AT_START_MS)
  }

  close(): void {
    this.#lists.close()
    this.#geo.close()
    this.#tokens?.close()
  }
}
