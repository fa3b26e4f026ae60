import { expect, test, vi } from 'vitest'
import { createAskForKept, serveKeptFiles, type KeptFile } from '../../../proxy/app/workers/kept-files.ts'
import type { LimiterPort } from '../../../proxy/limits/store/workers/worker-messages.ts'

/** The two ends of a channel, each with its listeners. */
function makePorts() {
  const listeners = {
    worker: [] as ((message: unknown) => void)[],
    primary: [] as ((message: unknown) => void)[],
  }
  const portTo = (other: keyof typeof listeners, own: keyof typeof listeners): LimiterPort => ({
    send(message) {
      for (const receive of listeners[other]) receive(structuredClone(message))
      return true
    },
    listen: (receive) => void listeners[own].push(receive),
  })
  return { listeners, worker: portTo('primary', 'worker'), primary: portTo('worker', 'primary') }
}

test('a worker gets each file in its columns, with one listener for all of its questions', async () => {
  const { listeners, worker, primary } = makePorts()
  const kept = (location: string): KeptFile | undefined =>
    location === 'gone'
      ? undefined
      : { columns: [Buffer.alloc(600_000, location), Buffer.from(location)], about: { entries: 7 } }
  serveKeptFiles('list', kept, primary)
  const askForKept = createAskForKept(worker)
  expect(listeners.worker).toHaveLength(0)
  const locations = Array.from({ length: 12 }, (_, i) => `list ${i}`)
  const files = await Promise.all(locations.map((location) => askForKept('list', location)))
  expect(files).toEqual(locations.map(kept))
  expect(await askForKept('list', 'gone')).toBeUndefined()
  expect(listeners.worker).toHaveLength(1)
})

test('a worker gets a file whose first and middle columns are empty, as those of a list of IPv6 networks are', async () => {
  const { worker, primary } = makePorts()
  const columns = ['', 'a', '', 'b'].map((text) => Buffer.from(text))
  serveKeptFiles('list', () => ({ columns }), primary)
  expect(await createAskForKept(worker)('list', 'a')).toEqual({ columns })
})

test('two questions about one file at once get the same answer, and a later one a new answer', async () => {
  const { worker, primary } = makePorts()
  let reads = 0
  const read = (): KeptFile => ({ columns: [Buffer.from(`reading ${(reads += 1)}`)] })
  serveKeptFiles('list', read, primary)
  const askForKept = createAskForKept(worker)
  const files = await Promise.all([askForKept('list', 'a'), askForKept('list', 'a')])
  const columns = [Buffer.from('reading 1')]
  expect(files).toEqual([{ columns }, { columns }])
  expect(await askForKept('list', 'a')).toEqual({ columns: [Buffer.from('reading 2')] })
})

test('late pieces of an answer that took too long are no part of the next one', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    const { worker, primary } = makePorts()
    const questions: { readonly id: number }[] = []
    primary.listen((message) => questions.push(message as { id: number }))
    const askForKept = createAskForKept(worker)
    const late = askForKept('list', 'a')
    await vi.advanceTimersByTimeAsync(10_000)
    expect(await late).toBeUndefined()
    const next = askForKept('list', 'a')
    const [first, second] = questions
    const piece = (text: string): string => Buffer.from(text).toString('base64')
    primary.send({ kept: 'piece', id: first?.id, column: 0, piece: piece('old') })
    primary.send({ kept: 'piece', id: second?.id, column: 0, piece: piece('new') })
    primary.send({ kept: 'end', id: first?.id, isThere: true })
    primary.send({ kept: 'end', id: second?.id, isThere: true })
    expect(await next).toEqual({ columns: [Buffer.from('new')] })
  } finally {
    vi.useRealTimers()
  }
})

test('a worker whose primary process is gone gets no file', async () => {
  const port: LimiterPort = {
    send() {
      throw new Error('Channel closed')
    },
    listen: () => undefined,
  }
  expect(await createAskForKept(port)('list', 'a')).toBeUndefined()
})
