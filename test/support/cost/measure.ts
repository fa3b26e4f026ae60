import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { ByteReader, CostRow } from './row.ts'

/**
 * What an input of the largest size may cost unless its row says less, in milliseconds of CPU on an otherwise idle machine. On a busy
 * machine the same work takes more CPU time: `slowness` measures how much more.
 */
const MAX_MS = 20
const MAX_KEPT_PER_BYTE = 40
/**
 * An input of eight times the size takes eight times as long, or somewhat longer if it fills caches; a quadratic reader takes sixty-four
 * times as long.
 */
const GROWTH = 8
const MAX_GROWTH = 24
/** Shorter runs are repeated until their total is well above the resolution of the clock. */
const MIN_SAMPLE_MS = 0.5
const SAMPLES = 7
/** An input that takes this many times its bound is not measured again. */
const BEYOND_DOUBT = 5
/** Once a reader has this many excesses, further ones say nothing new. */
const ENOUGH = 3
const KNOWN_WORK_MS = 0.2
/** How much the heap grows without any input, through compiled code and the like. */
const HEAP_NOISE = 64 * 1024
/** Each input is read several times, until the inputs together have this size, so that what the readers keep can be measured. */
const BYTES_KEPT_TOGETHER = 16 * 1024
/** For each read, a reader may pass a body on in one piece, and in one more for every 4 KiB. */
const MIN_PASSED_ON_BYTES = 4 * 1024
const ENDLESS_SIZES = 16
const ENDLESS_PIECE = 64 * 1024
const SHARED_BYTES = 4 * 1024

setFlagsFromString('--expose-gc')
/** Faster than `collectGarbage`, which repeats the collection for what one pass leaves. */
const collect = runInNewContext('gc') as () => void

/** In which pieces an input arrives. */
type Way = 'whole' | 'single bytes'

/** The measured quantity. Pieces of a body are counted with the memory: neither depends on the load of the machine. */
export type Cost = 'time' | 'memory'

/** A cost that is over a bound. */
export type Excess = {
  readonly row: string
  readonly unit: string
  readonly way: Way | 'endless'
  readonly what: string
}

/**
 * Measures what a reader costs. Call it in a process of its own, with the option `--single-threaded`.
 *
 * @param draws how many units are drawn beside those of the row
 */
export function measure(row: CostRow, draws: number, seed: number, costs: readonly Cost[]): Excess[] {
  const units = [...row.units, ...drawUnits(row.atoms, draws, seed)]
  return costs.flatMap((cost) =>
    cost === 'time' ? excessesOfTime(row, units) : excessesOfMemory(row, units),
  )
}

function waysOf(row: CostRow): readonly Way[] {
  return row.onlyWhole ? ['whole'] : ['whole', 'single bytes']
}

function excessesOfTime(row: CostRow, units: readonly string[]): Excess[] {
  const excesses: Excess[] = []
  for (const unit of units) {
    if (excesses.length >= ENOUGH) return excesses
    for (const way of waysOf(row)) {
      const what = excessOfTime(row, unit, way)
      if (what !== undefined) excesses.push({ row: row.name, unit, way, what })
    }
  }
  // Other load on the machine may last as long as all samples of one input. A real excess shows again in a second measurement.
  return excesses.filter(({ unit, way }) => way !== 'endless' && excessOfTime(row, unit, way) !== undefined)
}

function excessesOfMemory(row: CostRow, units: readonly string[]): Excess[] {
  const pieces: Excess[] = []
  const holdings: Holding[] = []
  for (const unit of units) {
    for (const way of waysOf(row)) holdings.push(holdingOf(row, unit, way))
    if (!row.onlyWhole) holdings.push(endlessHoldingOf(row, unit))
    const tooMany = excessOfPieces(row, unit)
    if (tooMany !== undefined) pieces.push({ row: row.name, unit, way: 'whole', what: tooMany })
  }
  return [...pieces, ...excessesOf(holdings)]
}

/** Draws without fast-check, which would make each garbage collection take four times as long. */
function drawUnits(atoms: readonly string[], draws: number, seed: number): string[] {
  let state = seed
  const below = (bound: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * bound)
  }
  const drawn = (): string =>
    Array.from({ length: 1 + below(6) }, () => atoms[below(atoms.length)] ?? '').join('')
  return atoms.length === 0 ? [] : Array.from({ length: draws }, drawn)
}

/** @param bytes approximate size of the input: its last unit is not cut */
function inputOf(row: CostRow, unit: string, bytes: number): Buffer {
  const around = bytesOf(row.wrap('')).length
  let content = ''
  if (!unit.includes('{n}'))
    content = unit.repeat(Math.max(1, Math.floor((bytes - around) / Math.max(1, unit.length))))
  else
    for (let n = 0; n === 0 || content.length + unit.length < bytes - around; n++)
      content += unit.replaceAll('{n}', String(n))
  return bytesOf(row.wrap(content))
}

function bytesOf(input: string | Buffer): Buffer {
  return typeof input === 'string' ? Buffer.from(input, 'latin1') : input
}

/** Yields pieces as a socket does, each with its own memory. Single bytes share memory, as there are too many of them. */
function* piecesOf(input: Buffer, pieceBytes: number): Generator<Buffer> {
  const readBytes = Math.max(pieceBytes, SHARED_BYTES)
  for (let start = 0; start < input.length; start += readBytes) {
    const part = input.subarray(start, start + readBytes)
    const bytes = Buffer.allocUnsafeSlow(part.length)
    bytes.set(part)
    for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes)
  }
}

/** One piece for each value of a byte. */
const singleBytes = Array.from({ length: 256 }, (_, byte) => Buffer.of(byte))

/** Pieces whose own memory does not slow down the measurement. */
function lightPiecesOf(input: Buffer, way: Way): readonly Buffer[] {
  return way === 'whole' ? [input] : Array.from(input, (byte) => singleBytes[byte] ?? input)
}

function pieceBytesOf(way: Way, input: Buffer): number {
  return way === 'whole' ? input.length : 1
}

/** @returns the reader of the pieces, with all that it keeps */
function read(row: CostRow, pieces: Iterable<Buffer>): ByteReader {
  const reader = row.open()
  try {
    for (const piece of pieces) reader.take(piece)
  } catch (error) {
    if (!row.refusals?.some((refusal) => error instanceof refusal)) throw error
  }
  return reader
}

function excessOfTime(row: CostRow, unit: string, way: Way): string | undefined {
  const [small, large] = [row.largestBytes / GROWTH, row.largestBytes].map((bytes) => {
    const input = inputOf(row, unit, bytes)
    return { pieces: lightPiecesOf(input, way), bytes: input.length }
  })
  if (!small || !large) return undefined
  // Growth compares unscaled times: a moment in which the machine is slow must not scale one of the two and not the other.
  let [smallMs, largeMs, scaledMs] = [Infinity, Infinity, Infinity]
  const maxMs = row.maxMs ?? MAX_MS
  for (let sample = 0; sample < SAMPLES; sample++) {
    const slow = slowness()
    smallMs = Math.min(
      smallMs,
      timeOf(() => read(row, small.pieces)),
    )
    const sampleMs = timeOf(() => read(row, large.pieces))
    largeMs = Math.min(largeMs, sampleMs)
    scaledMs = Math.min(scaledMs, sampleMs / slow)
    const isWithin = scaledMs <= maxMs && !growsTooMuch(smallMs, largeMs, large.bytes / small.bytes)
    if (scaledMs > BEYOND_DOUBT * maxMs) break
    // The first run includes compilation and costs more. One run within the bounds is enough.
    if (isWithin) return undefined
  }
  return scaledMs > maxMs
    ? `${large.bytes} bytes take ${scaledMs.toFixed(1)} ms of CPU, and may take ${maxMs}`
    : `${large.bytes} bytes take ${(largeMs / smallMs).toFixed(1)} times as long as ${small.bytes}: ${largeMs.toFixed(2)} ms, ${smallMs.toFixed(3)}`
}

/** Counts the pieces that a reader passes on for an input that comes in one read. */
function excessOfPieces(row: CostRow, unit: string): string | undefined {
  const input = inputOf(row, unit, row.largestBytes)
  const { passedOn = 0 } = read(row, [input])
  const most = 1 + Math.ceil(input.length / MIN_PASSED_ON_BYTES)
  return passedOn > most
    ? `${input.length} bytes of one read are passed on in ${passedOn} pieces, and may be in ${most}`
    : undefined
}

function growsTooMuch(smallMs: number, largeMs: number, growth: number): boolean {
  return largeMs > smallMs * growth * (MAX_GROWTH / GROWTH)
}

/** How many times more CPU time the same work takes now than on the machine that the bounds were set for; at least 1. */
function slowness(): number {
  return Math.max(1, timeOf(knownWork) / KNOWN_WORK_MS)
}

/** Does what a parser does: makes strings from bytes, matches a regular expression, looks into a table. */
function knownWork(): void {
  const bytes = Buffer.alloc(64, 'abc: def\r\n')
  const table = new Map([['abc', 1]])
  for (let i = 0; i < 1000; i++) {
    const text = bytes.toString('latin1', i & 7, 60)
    if (/[^\t\r\n\x20-\x7e]/.test(text) || table.get(text.slice(0, 3)) === 2) throw new Error('not as known')
  }
}

/** CPU milliseconds of one run, measured for the whole single-threaded process: Linux counts a thread's CPU in steps of 4 ms. */
function timeOf(run: () => void): number {
  for (let times = 1; ; times *= 4) {
    const before = process.cpuUsage()
    for (let i = 0; i < times; i++) run()
    const { user, system } = process.cpuUsage(before)
    const tookMs = (user + system) / 1000
    if (tookMs >= MIN_SAMPLE_MS) return tookMs / times
  }
}

/** Readers of one input, whose memory is measured. */
type Holding = {
  readonly of: Pick<Excess, 'row' | 'unit' | 'way'>
  readonly inputBytes: number
  readonly readers: number
  /** Bytes that each reader may keep. */
  readonly maxEach: number
  readonly read: () => ByteReader
}

function holdingOf(row: CostRow, unit: string, way: Way): Holding {
  const input = inputOf(row, unit, row.largestBytes)
  return {
    of: { row: row.name, unit, way },
    inputBytes: input.length,
    readers: Math.ceil(BYTES_KEPT_TOGETHER / input.length),
    maxEach: MAX_KEPT_PER_BYTE * input.length + (row.keptBytes ?? 0),
    read: () => read(row, piecesOf(input, pieceBytesOf(way, input))),
  }
}

/** Gives a reader far more than the largest input; it may keep no more than for the largest. */
function endlessHoldingOf(row: CostRow, unit: string): Holding {
  const bytes = ENDLESS_SIZES * row.largestBytes
  return {
    of: { row: row.name, unit, way: 'endless' },
    inputBytes: bytes,
    readers: Math.ceil(BYTES_KEPT_TOGETHER / row.largestBytes),
    maxEach: MAX_KEPT_PER_BYTE * row.largestBytes + (row.keptBytes ?? 0),
    read: () => read(row, piecesOf(inputOf(row, unit, bytes), ENDLESS_PIECE)),
  }
}

/**
 * Measures many inputs at once, as garbage collection takes longer than everything else: if together they keep no more than one may, none
 * exceeds its bound. Otherwise measures each half by itself.
 */
function excessesOf(holdings: readonly Holding[]): Excess[] {
  const [first] = holdings
  if (!first) return []
  const most = Math.min(...holdings.map(({ readers, maxEach }) => readers * maxEach))
  let kept = Infinity
  const samples = holdings.length === 1 ? 3 : 1
  for (let sample = 0; sample < samples && kept > most; sample++) kept = Math.min(kept, keptBytes(holdings))
  if (kept <= most) return []
  if (holdings.length === 1) {
    const each = Math.round(kept / first.readers)
    return [
      { ...first.of, what: `${each} bytes are kept of ${first.inputBytes}, and ${first.maxEach} may be` },
    ]
  }
  const half = holdings.length >> 1
  return [...excessesOf(holdings.slice(0, half)), ...excessesOf(holdings.slice(half))]
}

/** A function of its own: in a loop, the variable of the last round would still hold its readers when the next one begins. */
function keptBytes(holdings: readonly Holding[]): number {
  const before = usedBytes()
  const kept = holdings.map(({ readers, read }) => Array.from({ length: readers }, read))
  return Math.max(0, usedBytes() - before - (kept.length > 0 ? HEAP_NOISE : 0))
}

function usedBytes(): number {
  // The memory of buffers is freed after a collection, by the next one at the latest.
  collect()
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
