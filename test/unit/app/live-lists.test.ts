import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { LiveLists } from '../../../proxy/app/addresses/live-lists.ts'
import { parseAddress } from '../../../proxy/request/addresses/ip-address.ts'
import { makeTemporaryDirectory } from '../../support/run/temporary-directory.ts'
import { eventually } from '../../support/wait/eventually.ts'

// A list behind a symbolic link, as in a ConfigMap: a rollback points the link back at the earlier files.

const LOOK_MS = 500
const address = parseAddress('192.0.2.1') ?? []

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }))
afterEach(() => void vi.useRealTimers())

/** A folder with versions of a list, and a link to one of them. */
function createVersions(texts: Readonly<Record<string, string>>) {
  const folder = makeTemporaryDirectory()
  for (const [version, text] of Object.entries(texts)) {
    mkdirSync(join(folder, version))
    writeFileSync(join(folder, version, 'list.txt'), text)
  }
  return {
    location: join(folder, 'current', 'list.txt'),
    point(version: string) {
      symlinkSync(version, join(folder, 'next'))
      renameSync(join(folder, 'next'), join(folder, 'current'))
    },
  }
}

test('a list whose link is pointed back at an earlier version is right again', async () => {
  const versions = createVersions({ good: '192.0.2.1\n', bad: 'no address\n' })
  versions.point('good')
  const log = { info: vi.fn(), warn: vi.fn(), error: vi.fn() }
  const lists = new LiveLists(log)
  const file = { file: 'list.txt', location: versions.location }
  const prepared = await lists.prepare([file])
  prepared.commit()
  const list = prepared.lists.of(versions.location)
  const pointAndWait = async (version: 'good' | 'bad'): Promise<void> => {
    versions.point(version)
    await eventually(`the list is ${version}`, () => {
      vi.advanceTimersByTime(LOOK_MS)
      expect(lists.readUse()).toMatchObject([{ lastReadSucceeded: version === 'good' }])
    })
    expect(list.has(address)).toBe(true)
  }
  for (const version of ['bad', 'good', 'bad'] as const) await pointAndWait(version)
  // The same holds if a reload of the settings reads the list before the watcher looks at the file.
  versions.point('good')
  const again = await lists.prepare([file])
  again.commit()
  expect(lists.readUse()).toMatchObject([{ lastReadSucceeded: true }])
  lists.close()
})

test.each([
  ['good', '192.0.2.1\n192.0.2.8\n192.0.2.9\n', { entries: 3, lastReadSucceeded: true }],
  ['bad', 'no address\n192.0.2.8\n192.0.2.9\n', { lastReadSucceeded: false }],
])('a list that becomes %s while a reload is under way is read again after it', async (_, text, use) => {
  const location = join(makeTemporaryDirectory(), 'list.txt')
  writeFileSync(location, '192.0.2.9\n')
  const lists = new LiveLists({ info: vi.fn(), warn: vi.fn(), error: vi.fn() })
  const file = { file: 'list.txt', location }
  const first = await lists.prepare([file])
  first.commit()
  const isRead = (): void => {
    vi.advanceTimersByTime(LOOK_MS)
    expect(lists.readUse()).toMatchObject([use])
  }
  writeFileSync(location, '192.0.2.8\n192.0.2.9\n')
  const second = await lists.prepare([file])
  // The table is still being prepared, perhaps in other processes, and the watcher sees the next change of the file.
  writeFileSync(location, text)
  await eventually('the list is read', isRead)
  second.commit()
  await eventually('the list is read after the reload', isRead)
  lists.close()
})
