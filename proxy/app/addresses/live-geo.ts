import type { Log } from '../../../shared/log.ts'
import { reasonOf } from '../../../shared/settings/problems.ts'
import { readRegularFile } from '../../../shared/settings/regular-file.ts'
import { SettingsError } from '../../../shared/settings/settings-error.ts'
import { IS_GONE, signatureOf, watchFile } from '../../config/reload/watch-file.ts'
import type { GeoFiles } from '../../config/clients/geoip.ts'
import type { GeoUse } from '../../telemetry/telemetry.ts'
import { MAX_DATABASE_BYTES, openDatabase, type Database } from '../../request/addresses/geo/database.ts'
import { UNKNOWN, type Geo, type GeoField } from '../../request/addresses/geo/geo.ts'

export type PreparedGeo = {
  readonly geo: Geo | undefined
  /** Call this when the table takes effect. */
  commit(): void
}

type LiveFile = {
  readonly file: string
  readonly location: string
  database: Database
  bytes: Buffer
  signature: string
  lastReadSucceeded: boolean
  stop: (() => void) | undefined
}
type LiveFiles = ReadonlyMap<GeoField, LiveFile>

export type OtherGeo = {
  /** Gets the content that the primary process uses, if the first table cannot use the file. */
  readonly askForKept?: (location: string) => Promise<Buffer | undefined>
}

/**
 * The databases of countries and autonomous systems in this process. Each is read again when its file changes. If a changed file cannot be
 * used, the previous content stays in use, and the reason is logged.
 */
export class LiveGeo {
  readonly #log: Pick<Log, 'info' | 'error'>
  readonly #others: OtherGeo
  /** Whether no table has taken effect yet. */
  #isFirst = true
  #current: LiveFiles = new Map()

  constructor(log: Pick<Log, 'info' | 'error'>, others: OtherGeo = {}) {
    this.#log = log
    this.#others = others
  }

  /**
   * Reads the files of a table that are new or have changed.
   *
   * @returns the databases; `geo` is undefined without files. Rejects with SettingsError if a file cannot be used
   */
  async prepare(files: GeoFiles = {}): Promise<PreparedGeo> {
    const next = new Map<GeoField, LiveFile>()
    for (const field of ['country', 'asn'] as const) {
      const named = files[field]
      if (!named) continue
      const known = this.#current.get(field)
      if (known?.location === named.location && known.signature === signatureOf(named.location))
        next.set(field, known)
      else next.set(field, { ...named, ...(await this.#openNew(named, field)), stop: undefined })
    }
    return { geo: next.size === 0 ? undefined : geoOf(next), commit: () => this.#commit(next) }
  }

  /** Returns the current content of a file, for processes that cannot read the file. */
  readKept(location: string): Buffer | undefined {
    return [...this.#current.values()].find((live) => live.location === location)?.bytes
  }

  readUse(): readonly GeoUse[] {
    return Array.from(this.#current, ([database, { lastReadSucceeded }]) => ({ database, lastReadSucceeded }))
  }

  close(): void {
    for (const live of this.#current.values()) live.stop?.()
  }

  #commit(next: LiveFiles): void {
    for (const [field, live] of this.#current) if (next.get(field) !== live) live.stop?.()
    for (const [field, live] of next)
      live.stop ??= watchFile(
        live.location,
        live.signature,
        () => void this.#readAgain(live, field),
        () => this.#refuse(live, new Error(IS_GONE)),
      )
    this.#current = next
    this.#isFirst = false
  }

  /** Opens a new file. If it cannot be used when this process starts, uses the primary process's copy. */
  async #openNew(named: NamedFile, field: GeoField): Promise<OpenedFile> {
    const signature = signatureOf(named.location)
    try {
      return await openFile(named, field, this.#log)
    } catch (error) {
      const bytes = this.#isFirst ? await this.#others.askForKept?.(named.location) : undefined
      if (!bytes) throw new SettingsError([`geoip.${field}: cannot use ${named.file}: ${reasonOf(error)}`])
      this.#logRefusal(named.file, error)
      const database = openLogged(bytes, named.file, field, this.#log)
      return { database, bytes, signature, lastReadSucceeded: false }
    }
  }

  async #readAgain(live: LiveFile, field: GeoField): Promise<void> {
    try {
      const read = await openFile(live, field, this.#log)
      // The file changed while it was read. The watcher calls this again when the file has stopped changing.
      if (read.signature !== signatureOf(live.location)) return
      Object.assign(live, read)
      this.#log.info({ file: live.file }, 'geoip database reloaded')
    } catch (error) {
      this.#refuse(live, error)
    }
  }

  #refuse(live: LiveFile, error: unknown): void {
    live.lastReadSucceeded = false
    this.#logRefusal(live.file, error)
  }

  #logRefusal(file: string, error: unknown): void {
    this.#log.error(
      { file, reason: reasonOf(error) },
      'cannot use the changed geoip database; keeping the previous one',
    )
  }
}

/** Reads the files once, for programs that serve no requests. */
export async function readGeo(files: GeoFiles | undefined): Promise<Geo | undefined> {
  const { geo } = await new LiveGeo({ info: () => undefined, error: () => undefined }).prepare(files)
  return geo
}

type NamedFile = { readonly file: string; readonly location: string }
type OpenedFile = Pick<LiveFile, 'database' | 'bytes' | 'signature' | 'lastReadSucceeded'>

async function openFile(
  { file, location }: NamedFile,
  field: GeoField,
  log: Pick<Log, 'error'>,
): Promise<OpenedFile> {
  const signature = signatureOf(location)
  const bytes = await readRegularFile(location, MAX_DATABASE_BYTES)
  return { database: openLogged(bytes, file, field, log), bytes, signature, lastReadSucceeded: true }
}

/** Opens a database, and logs damage that a later lookup finds. */
function openLogged(bytes: Buffer, file: string, field: GeoField, log: Pick<Log, 'error'>): Database {
  return openDatabase(bytes, field, (error) =>
    log.error(
      { file, reason: reasonOf(error) },
      'the geoip database is damaged; addresses that cannot be looked up count as unknown',
    ),
  )
}

/** Caches the last answer: keys and conditions of several rules look up the same address, one after another. */
function geoOf(files: LiveFiles): Geo {
  const remember = (live: LiveFile | undefined): ((address: string) => string) => {
    let lastAddress = ''
    let lastDatabase: Database | undefined
    let last = UNKNOWN
    return (address) => {
      if (!live) return UNKNOWN
      if (address !== lastAddress || live.database !== lastDatabase) {
        last = live.database.find(address) ?? UNKNOWN
        lastAddress = address
        lastDatabase = live.database
      }
      return last
    }
  }
  const find = { country: remember(files.get('country')), asn: remember(files.get('asn')) }
  return { find: (field, address) => find[field](address) }
}
