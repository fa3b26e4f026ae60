import { createReadStream, fstatSync, openSync } from 'node:fs'
import type { Readable, Transform } from 'node:stream'
import { createGunzip, createZstdDecompress } from 'node:zlib'
import { reasonOf } from '../../../../shared/settings/problems.ts'
import { CommandError, status } from '../../output.ts'

/** An open log. The name `-` is standard input. */
export type LogFile = {
  readonly name: string
  /** The size; undefined if the log is not a file. */
  readonly bytes: number | undefined
  /** Returns the number of bytes read from the file so far, before decompression. */
  readBytes(): number
  /** The lines in batches, one character per byte. A line that is too long is truncated. */
  readonly batches: AsyncIterable<string[]>
}

const CHUNK_BYTES = 64 * 1024
/** Maximum length of a line. By default, a gateway accepts request heads of at most 16 KiB. */
const MAX_LINE_LENGTH = 64 * 1024
/** Programs on Windows write it before UTF-8. */
const byteOrderMark = /^\xef\xbb\xbf/
const gzip = Buffer.from([0x1f, 0x8b])
const zstd = Buffer.from([0x28, 0xb5, 0x2f, 0xfd])

/** Opens a log. Its first bytes show whether it is compressed. Throws a CommandError if the log cannot be opened. */
export function openLog(name: string): LogFile {
  try {
    const fd = name === '-' ? 0 : openSync(name, 'r')
    const stats = fstatSync(fd)
    if (stats.isDirectory()) throw new Error('it is a directory')
    // `readFileArgument` has the reason why standard input is not read by its file descriptor.
    const stream = name === '-' ? process.stdin : createReadStream('', { fd, highWaterMark: CHUNK_BYTES })
    return {
      name,
      bytes: stats.isFile() ? stats.size : undefined,
      readBytes: () => stream.bytesRead,
      batches: readBatches(stream, name),
    }
  } catch (error) {
    throw unreadable(name, error)
  }
}

async function* readBatches(stream: Readable, name: string): AsyncGenerator<string[]> {
  let rest = ''
  let isFirst = true
  try {
    for await (const chunk of decompressed(stream)) {
      const text = chunk.toString('latin1')
      const lines = (rest + (isFirst ? text.replace(byteOrderMark, '') : text)).split('\n')
      isFirst = false
      rest = (lines.pop() ?? '').slice(0, MAX_LINE_LENGTH)
      if (lines.length > 0) yield lines
    }
  } catch (error) {
    throw unreadable(name, error)
  } finally {
    stream.destroy()
  }
  if (rest !== '') yield [rest]
}

async function* decompressed(stream: Readable): AsyncGenerator<Buffer> {
  const chunks = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer, unknown>
  const head: IteratorResult<Buffer, unknown> = await chunks.next()
  if (head.done === true) return
  const first = head.value
  const decompressor = decompressorFor(first)
  if (!decompressor) {
    yield first
    for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) yield next.value
    return
  }
  const feed = async (): Promise<void> => {
    for (let chunk: Buffer | undefined = first; chunk;) {
      if (!decompressor.write(chunk)) await new Promise((resolve) => decompressor.once('drain', resolve))
      const next: IteratorResult<Buffer> = await chunks.next()
      chunk = next.done === true ? undefined : next.value
    }
    decompressor.end()
  }
  feed().catch((error: unknown) =>
    decompressor.destroy(error instanceof Error ? error : new Error(String(error))),
  )
  yield* decompressor as AsyncIterable<Buffer>
}

function decompressorFor(first: Buffer): Transform | undefined {
  const options = { chunkSize: CHUNK_BYTES }
  if (first.subarray(0, gzip.length).equals(gzip)) return createGunzip(options)
  return first.subarray(0, zstd.length).equals(zstd) ? createZstdDecompress(options) : undefined
}

function unreadable(name: string, error: unknown): CommandError {
  return new CommandError(
    `${name === '-' ? 'standard input' : name}: cannot be read (${reasonOf(error)})`,
    status.no,
  )
}
