import { doInTurns } from '../../../shared/steps.ts'
import type { Log } from '../../../shared/log.ts'
import { SettingsError } from '../../../shared/settings/settings-error.ts'
import { IS_GONE, signatureOf, watchFile } from '../../config/reload/watch-file.ts'
import type { ListFile } from '../../policy.ts'
import type { IpAddress } from '../../request/addresses/ip-address.ts'
import type { AddressList, AddressLists } from '../../request/addresses/lists/address-lists.ts'
import {
  problemOfFile,
  problemsOfList,
  warnOfEverybody,
  warnOfNat64,
} from '../../request/addresses/lists/list-problems.ts'
import { readListInThread } from '../../request/addresses/lists/read-in-thread.ts'
import type { ReadList } from '../../request/addresses/lists/read-list.ts'
import { SortedRanges, type RangeData } from '../../request/addresses/lists/sorted-ranges.ts'
import type { ListUse } from '../../telemetry/telemetry.ts'

/** A list as it was when its file was last valid, and the time of that read. */
export type KeptList = { readonly data: RangeData; readonly entries: number; readonly readAtMs: number }

export type PreparedLists = {
  readonly lists: AddressLists
  /** Call this when the table takes effect: watches new files, and drops files that the table no longer names. */
  commit(): void
}

type Content = { readonly ranges: SortedRanges; readonly entries: number; readonly signature: string }

/** Maximum number of invalid lines of a list in one log line. */
const MISTAKES_IN_LOG = 5

class LiveList implements AddressList {
  file: string
  content: Content
  lastReadSucceeded = true
  lastSuccessAtMs = Date.now()
  stop: (() => void) | undefined

  constructor(file: string, content: Content) {
    this.file = file
    this.content = content
  }

  has(address: IpAddress): boolean {
    return this.content.ranges.has(address)
  }

  /** Whether the list has the content of the file with this signature, and the last read found it valid. */
  isCurrent(signature: string): boolean {
    return this.lastReadSucceeded && this.content.signature === signature
  }

  use(content: Content): void {
    void doInTurns(this.content.ranges.release())
    this.content = content
    this.lastReadSucceeded = true
    this.lastSuccessAtMs = Date.now()
  }
}

export type OtherLists = {
  /** The decisions of CrowdSec, which are part of `AddressLists`. */
  readonly crowdsec?: AddressList | undefined
  /** Gets the list that the primary process uses, if the first table cannot use the file. */
  readonly askForKept?: ((location: string) => Promise<KeptList | undefined>) | undefined
}

/**
 * The lists of addresses in this process. Each is read again when its file changes, one list at a time, in a thread. If a changed list
 * cannot be used, the previous list stays in use, and the reason is logged.
 */
export class LiveLists {
  readonly #log: Pick<Log, 'info' | 'warn' | 'error'>
  readonly #others: OtherLists
  /** Whether no table has taken effect yet. */
  #isFirst = true
  /** By file location. */
  #current: ReadonlyMap<string, LiveList> = new Map()
  #last: Promise<unknown> = Promise.resolve()

  constructor(log: Pick<Log, 'info' | 'warn' | 'error'>, others: OtherLists = {}) {
    this.#log = log
    this.#others = others
  }

  /**
   * Reads the lists of a table that are new or have changed. Current lists do not change before the table takes effect.
   *
   * @returns the lists. Rejects with a SettingsError that has every invalid line
   */
  prepare(files: readonly ListFile[]): Promise<PreparedLists> {
    return this.#inTurn(() => this.#prepare(files))
  }

  /** Returns the current list of a file, for processes that cannot read the file. */
  readKept(location: string): KeptList | undefined {
    const list = this.#current.get(location)
    if (!list) return undefined
    const { content, lastSuccessAtMs } = list
    return { data: content.ranges.data, entries: content.entries, readAtMs: lastSuccessAtMs }
  }

  readUse(): readonly ListUse[] {
    return [...this.#current.values()].map(({ file, content, lastReadSucceeded, lastSuccessAtMs }) => ({
      list: file,
      entries: content.entries,
      lastReadSucceeded,
      lastSuccessAtMs,
    }))
  }

  close(): void {
    for (const list of this.#current.values()) list.stop?.()
  }

  #inTurn<Result>(task: () => Promise<Result>): Promise<Result> {
    const result = this.#last.then(task)
    this.#last = result.catch(() => undefined)
    return result
  }

  async #read({ file, location }: ListFile): Promise<Content> {
    const signature = signatureOf(location)
    const found = await readOrExplain(file, location)
    if (!('data' in found)) throw new SettingsError(problemsOfList(file, found))
    if (found.everybody !== undefined) this.#log.warn(warnOfEverybody(file, found.everybody))
    if (found.missesNat64) this.#log.warn(warnOfNat64(file, found.missesNat64))
    return { ranges: new SortedRanges(found.data), entries: found.entries, signature }
  }

  /** Reads a new list. If its file has a mistake when this process starts, uses the primary process's copy. */
  async #readNew(file: ListFile): Promise<LiveList> {
    const signature = signatureOf(file.location)
    try {
      return new LiveList(file.file, await this.#read(file))
    } catch (error) {
      const kept =
        this.#isFirst && error instanceof SettingsError
          ? await this.#others.askForKept?.(file.location)
          : undefined
      if (!kept) throw error
      this.#logRefusal(file.file, error)
      const ranges = new SortedRanges(kept.data)
      const list = new LiveList(file.file, { ranges, entries: kept.entries, signature })
      list.lastReadSucceeded = false
      list.lastSuccessAtMs = kept.readAtMs
      return list
    }
  }

  #logRefusal(list: string, error: unknown): void {
    const mistakes = error instanceof SettingsError ? error.problems : [String(error)]
    this.#log.error(
      { list, mistakes: mistakes.slice(0, MISTAKES_IN_LOG) },
      'cannot use the changed list of addresses; keeping the previous one',
    )
  }

  async #readAgain(list: LiveList, location: string): Promise<void> {
    try {
      const content = await this.#read({ file: list.file, location })
      // The file changed while it was read. The watcher calls this again when the file has stopped changing.
      if (content.signature !== signatureOf(location) || list.isCurrent(content.signature)) return
      list.use(content)
      this.#log.info({ list: list.file, entries: content.entries }, 'list of addresses reloaded')
    } catch (error) {
      list.lastReadSucceeded = false
      this.#logRefusal(list.file, error)
    }
  }

  async #prepare(files: readonly ListFile[]): Promise<PreparedLists> {
    const next = new Map<string, LiveList>()
    const changed = new Map<LiveList, Content>()
    const problems: string[] = []
    for (const file of files) {
      const list = this.#current.get(file.location)
      if (list?.isCurrent(signatureOf(file.location))) {
        next.set(file.location, list)
        continue
      }
      try {
        if (list) changed.set(list, await this.#read(file))
        next.set(file.location, list ?? (await this.#readNew(file)))
      } catch (error) {
        if (!(error instanceof SettingsError)) throw error
        problems.push(...error.problems)
      }
    }
    if (problems.length > 0) throw new SettingsError(problems)
    return {
      lists: listsOf(next, this.#others.crowdsec),
      commit: () => {
        for (const [location, list] of this.#current) if (!next.has(location)) list.stop?.()
        for (const { file, location } of files) {
          const list = next.get(location)
          if (list) this.#begin(list, file, location, changed.get(list))
        }
        this.#current = next
        this.#isFirst = false
      },
    }
  }

  #begin(list: LiveList, file: string, location: string, changed: Content | undefined): void {
    list.file = file
    if (changed) {
      list.use(changed)
      // The file may have changed again since it was read, and the old watcher may have noticed that already. A new watcher compares the
      // file with the content now in use.
      list.stop?.()
      list.stop = undefined
    }
    const readAgain = (): void => void this.#inTurn(() => this.#readAgain(list, location))
    list.stop ??= watchFile(location, list.content.signature, readAgain, () => {
      list.lastReadSucceeded = false
      this.#logRefusal(list.file, new SettingsError([`${list.file}: ${IS_GONE}`]))
    })
  }
}

/** @throws SettingsError if the file cannot be read */
async function readOrExplain(file: string, location: string): Promise<ReadList> {
  try {
    return await readListInThread(location)
  } catch (error) {
    throw new SettingsError([problemOfFile(file, error)])
  }
}

function listsOf(lists: ReadonlyMap<string, AddressList>, crowdsec: AddressList | undefined): AddressLists {
  return {
    crowdsec,
    of(location) {
      const list = lists.get(location)
      if (!list) throw new Error(`the list ${location} was not read`)
      return list
    },
  }
}
