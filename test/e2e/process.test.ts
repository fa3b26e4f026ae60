import { stripVTControlCharacters } from 'node:util'
import { expect, describe, test } from 'vitest'
import { spawnNode, type NodeProcess } from '../support/gateway/process.ts'

type Small = NodeProcess & {
  /** Makes the process do something; resolves once it has begun. */
  tell(path: string): Promise<{ uncaught: number; memory: number }>
}

async function startSmall(env: Record<string, string> = {}): Promise<Small> {
  const started = spawnNode('test/support/gateway/small-process.ts', env)
  const [, port] = await started.waitForLine(/^port (\d+)$/)
  return {
    ...started,
    tell: async (path) =>
      (await fetch(`http://127.0.0.1:${port}${path}`)).json() as ReturnType<Small['tell']>,
  }
}

function linesOf(small: NodeProcess): Record<string, unknown>[] {
  return small
    .stdout()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
}

describe('the log', () => {
  test('a line is an object with a readable level and time', async () => {
    const small = await startSmall()
    await small.tell('/log?lines=1')
    await small.waitForLine(/numbered/)
    expect(linesOf(small)[0]).toEqual({
      level: 'info',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as string,
      name: 'small',
      pid: small.child.pid,
      line: 0,
      filler: '',
      msg: 'numbered',
    })
    await small.stop()
  })

  test('the log is formatted for people on a terminal, with the name of the process', async () => {
    const onTerminal = 'data:text/javascript,process.stdout.isTTY=true'
    const small = await startSmall({ NODE_OPTIONS: `--import=${onTerminal}` })
    await small.tell('/log?lines=1')
    const [line] = await small.waitForLine(/^.*numbered.*$/)
    expect(stripVTControlCharacters(line)).toMatch(/^\[\d\d:\d\d:\d\d\.\d{3}\] INFO \(small\): numbered$/)
    await small.stop()
  })

  test('the log is complete and in order when the process exits at once', async () => {
    const small = await startSmall()
    // Ten times the capacity of a pipe.
    await small.tell('/log?lines=4000&bytes=50')
    await small.tell('/exit?status=3').catch(() => undefined)
    expect(await small.exit).toBe(3)
    expect(linesOf(small).map(({ line }) => line)).toEqual(Array.from({ length: 4_000 }, (_, line) => line))
  })

  test('a closed standard output ends the log and not the process', async () => {
    const small = await startSmall()
    small.child.stdout?.destroy()
    for (let round = 0; round < 5; round++) await small.tell('/log?lines=100')
    expect((await small.tell('/')).uncaught).toBe(0)
    expect(await small.stop()).toBe(0)
  })

  test('a log reader that hangs delays nothing, and later gets the number of lost lines', async () => {
    const small = await startSmall()
    await small.tell('/log?lines=10&bytes=1000')
    await small.waitForLine(/"line":9/)
    const before = await small.tell('/')
    small.child.stdout?.pause()
    for (let round = 0; round < 40; round++) await small.tell('/log?lines=1000&bytes=1000')
    const after = await small.tell('/')
    // 40 MB were logged. The buffer is bounded to 8 MiB, but copies of it are in transit.
    expect(after.memory - before.memory).toBeLessThan(100 * 1024 * 1024)
    small.child.stdout?.resume()
    const [, lost] = await small.waitForLine(/"lines":(\d+),"msg":"log lines were dropped/)
    const arrived = linesOf(small).filter(({ msg }) => msg === 'numbered').length
    expect(arrived + Number(lost)).toBe(40_010)
    expect(Number(lost)).toBeGreaterThan(10_000)
    expect(await small.stop()).toBe(0)
  })
})

describe('an uncaught exception', () => {
  test.each([
    ['/throw', 'thrown in vain', 'uncaughtException'],
    ['/reject', 'rejected in vain', 'unhandledRejection'],
  ])('%s: is logged with its stack and counted, and the process serves on', async (path, message, origin) => {
    const small = await startSmall()
    await small.tell(path)
    await small.tell(path)
    await small.waitForLine(new RegExp(message))
    expect((await small.tell('/')).uncaught).toBe(2)
    const line = linesOf(small)[0]
    expect(line).toMatchObject({ level: 'error', origin })
    expect(line?.['err']).toMatchObject({
      message,
      stack: expect.stringContaining('small-process.ts') as string,
    })
    expect(await small.stop()).toBe(0)
  })
})

describe.concurrent('a signal', () => {
  test.each(['SIGTERM', 'SIGINT'] as const)('%s: closes and ends with 0', async (signal) => {
    const small = await startSmall()
    expect(await small.stop(signal)).toBe(0)
    expect(linesOf(small).map(({ msg }) => msg)).toEqual(['stopping', 'stopped'])
  })

  test('open handles do not keep the process running, which logs how many of each type there are', async () => {
    const small = await startSmall()
    await small.tell('/hold')
    expect(await small.stop()).toBe(0)
    expect(linesOf(small).at(-1)).toMatchObject({
      msg: 'exiting with open handles',
      open: { Timeout: 1 },
    })
  })

  test('a close that fails is status 1, and logged', async () => {
    const small = await startSmall({ CLOSE: 'fails' })
    expect(await small.stop()).toBe(1)
    expect(linesOf(small).at(-1)).toMatchObject({ msg: 'shutdown failed', err: { message: 'cannot close' } })
  })

  test('two signals in a moment count as one; another after a second ends the process with 1', async () => {
    const small = await startSmall({ CLOSE: 'never' })
    small.child.kill('SIGINT')
    small.child.kill('SIGINT')
    await small.waitForLine(/stopping/)
    small.child.kill('SIGINT')
    expect((await small.tell('/')).uncaught).toBe(0)
    const nextSecond = setInterval(() => small.child.kill('SIGTERM'), 300)
    expect(await small.exit).toBe(1)
    clearInterval(nextSecond)
    expect(linesOf(small).at(-1)).toMatchObject({
      msg: 'second signal: exiting without waiting for open connections',
    })
  })
})
