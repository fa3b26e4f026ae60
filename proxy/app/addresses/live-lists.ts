import { doInTurns } from '../../../shared/steps.ts'
import type { Log } from '../../../shared/log.ts'
import { SettingsError } from '../../../shared/settings/settings.ts'
import { signatureOf, watchFile } from '../../config/reload/watch-file.ts'
import type { ListFile } from '../../policy.ts'
import type { IpAddress } from '../../request/addresses/ip-address.ts'
import type { AddressList, AddressLists } from '../../request/addresses/lists/address-lists.ts'
import {
  problemOfFile,
  problemsOfList,
  warnOfEverybody,
} from '../../request/addresses/lists/list-problems.ts'
import { readListInThread } from '../../request/addresses/lists/read-in-thread.ts'
import type { ReadList } from '../../request/addresses/lists/read-list.ts'
import { SortedRanges, type RangeData } from '../../request/addresses/lists/sorted-ranges.ts'
import type { ListUse } from '../../telemetry/telemetry.ts'

/** The lists of addresses of this process, each read again when its file changes. */
export type LiveLists = {
  /**
   * Reads the lists of a table that are new, or have changed: those that are in force stay as they are before the table is.
   *
   * @returns rejects with SettingsError with every line that is wrong
   */
  prepare(files: readonly ListFile[]): Promise<PreparedLists>
  /** The list in force of a file, to be kept for processes that cannot read it. */
  readKept(location: string): KeptList | undefined
  readUse(): readonly ListUse[]
  close(): void
}

/** A list as its file had it when it could last be used, and when that was. */
export type KeptList = { readonly data: RangeData; readonly entries: number; readonly readAtMs: number }

export type PreparedLists = {
  readonly lists: AddressLists
  /** Their table is in force now: begins to watch those that are new, and forgets those that no list names any more. */
  commit(): void
}

type Content = { readonly ranges: SortedRanges; readonly entries: number; readonly signature: string }

/** Lines of a bad list in one log line. */
const MISTAKES_IN_LOG = 5

class LiveList implements AddressList {
  file: string
  content: Content
  isLastRight = true
  lastRightAtMs = Date.now()
  stop: (() => void) | undefined

  constructor(file: string, content: Content) {
    this.file = file
    this.content = content
  }

  has(address: IpAddress): boolean {
    return this.content.ranges.has(address)
  }

  use(content: Content): void {
    void doInTurns(this.content.ranges.release())
    this.content = content
    this.isLastRight = true
    this.lastRightAtMs = Date.now()
  }
}

/**
 * Reads one list at a time, in a thread. Where a list that has changed cannot be used, the one in force stays, and the log says why.
 *
 * @param others.crowdsec is handed on with the lists
 * @param others.askForKept for the first table: the list that is in force elsewhere, where the file cannot be used
 */
export function createLiveLists(
  log: Pick<Log, 'info' | 'warn' | 'error'>,
  others: {
    readonly crowdsec?: AddressList | undefined
    readonly askForKept?: ((location: string) => Promise<KeptList | undefined>) | undefined
  } = {},
): LiveLists {
  const { crowdsec, askForKept } = others
  let isFirst = true
  let inForce: ReadonlyMap<string, LiveList> = new Map()
  let last: Promise<unknown> = Promise.resolve()

  function inTurn<Result>(task: () => Promise<Result>): Promise<Result> {
    const result = last.then(task)
    last = result.catch(() => undefined)
    return result
  }

  async function read({ file, location }: ListFile): Promise<Content> {
    const signature = signatureOf(location)
    const found = await readOrExplain(file, location)
    if (!('data' in found)) throw new SettingsError(problemsOfList(file, found))
    if (found.everybody !== undefined) log.warn(warnOfEverybody(file, found.everybody))
    return { ranges: new SortedRanges(found.data), entries: found.entries, signature }
  }

  /** A new list; where this process starts, and its file has a mistake, the one that is in force elsewhere. */
  async function readNew(file: ListFile): Promise<LiveList> {
    const signature = signatureOf(file.location)
    try {
      return new LiveList(file.file, await read(file))
    } catch (error) {
      const kept = isFirst && error instanceof SettingsError ? await askForKept?.(file.location) : undefined
      if (!kept) throw error
      logRefusal(file.file, error)
      const ranges = new SortedRanges(kept.data)
      const list = new LiveList(file.file, { ranges, entries: kept.entries, signature })
      list.isLastRight = false
      list.lastRightAtMs = kept.readAtMs
      return list
    }
  }

  function logRefusal(list: string, error: unknown): void {
    const mistakes = error instanceof SettingsError ? error.problems : [String(error)]
    log.error(
      { list, mistakes: mistakes.slice(0, MISTAKES_IN_LOG) },
      'list of addresses refused; keeping the one in force',
    )
  }

  async function readAgain(list: LiveList, location: string): Promise<void> {
    try {
      const content = await read({ file: list.file, location })
      // Somebody has written it meanwhile: when it has come to rest, this is called again.
      if (content.signature !== signatureOf(location) || content.signature === list.content.signature) return
      list.use(content)
      log.info({ list: list.file, entries: content.entries }, 'list of addresses reloaded')
    } catch (error) {
      list.isLastRight = false
      logRefusal(list.file, error)
    }
  }

  async function prepare(files: readonly ListFile[]): Promise<PreparedLists> {
    const next = new Map<string, LiveList>()
    const changed = new Map<LiveList, Content>()
    const problems: string[] = []
    for (const file of files) {
      const list = inForce.get(file.location)
      if (list?.content.signature === signatureOf(file.location)) {
        next.set(file.location, list)
        continue
      }
      try {
        if (list) changed.set(list, await read(file))
        next.set(file.location, list ?? (await readNew(file)))
      } catch (error) {
        if (!(error instanceof SettingsError)) throw error
        problems.push(...error.problems)
      }
    }
    if (problems.length > 0) throw new SettingsError(problems)
    return {
      lists: listsOf(next, crowdsec),
      commit() {
        for (const [location, list] of inForce) if (!next.has(location)) list.stop?.()
        for (const { file, location } of files) {
          const list = next.get(location)
          if (list) begin(list, file, location, changed.get(list))
        }
        inForce = next
        isFirst = false
      },
    }
  }

  function begin(list: LiveList, file: string, location: string, changed: Content | undefined): void {
    list.file = file
    if (changed) list.use(changed)
    list.stop ??= watchFile(location, list.content.signature, () => {
      void inTurn(() => readAgain(list, location))
    })
  }

  return {
    prepare: (files) => inTurn(() => prepare(files)),
    readKept(location) {
      const list = inForce.get(location)
      if (!list) return undefined
      const { content, lastRightAtMs } = list
      return { data: content.ranges.data, entries: content.entries, readAtMs: lastRightAtMs }
    },
    readUse: () =>
      [...inForce.values()].map(({ file, content, isLastRight, lastRightAtMs }) => ({
        list: file,
        entries: content.entries,
        isLastRight,
        lastRightAtMs,
      })),
    close() {
      for (const list of inForce.values()) list.stop?.()
    },
  }
}

/** @throws SettingsError where the file cannot be read */
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
