// The parts of HTTP/2 frames (RFC 9113 sections 4.1, 6 and 7).

export const frameTypes = {
  data: 0,
  headers: 1,
  priority: 2,
  rstStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const

export const flags = { endStream: 0x1, ack: 0x1, endHeaders: 0x4, padded: 0x8, priority: 0x20 } as const

export const errorCodes = {
  noError: 0,
  protocolError: 1,
  internalError: 2,
  flowControlError: 3,
  streamClosed: 5,
  frameSizeError: 6,
  refusedStream: 7,
  cancel: 8,
  compressionError: 9,
  enhanceYourCalm: 11,
} as const

export const settingIds = {
  headerTableSize: 1,
  enablePush: 2,
  maxConcurrentStreams: 3,
  initialWindowSize: 4,
  maxFrameSize: 5,
  maxHeaderListSize: 6,
} as const

export const FRAME_HEAD_BYTES = 9
/** Maximum payload of a frame unless the peer announces more. The gateway never announces more, and never sends more. */
export const MAX_FRAME_BYTES = 16_384
/** Initial size of a window in either direction, until SETTINGS changes it. */
export const INITIAL_WINDOW = 65_535
/**
 * The window for all content that a client sends on a connection. A client can fill it once per round trip, so it is larger than the
 * windows of a hundred streams together: parallel uploads must not wait for each other. The windows of the streams bound the memory.
 */
export const CONNECTION_WINDOW = 16 * 1024 * 1024
export const MAX_WINDOW = 2 ** 31 - 1
/** The highest stream id. */
export const LAST_STREAM = 2 ** 31 - 1

/** A connection error (section 5.4.1): the connection closes with a GOAWAY that has the code. */
export class ConnectionError extends Error {
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

/** Writes the head of a frame. Returns where its payload begins. */
export function writeFrameHead(
  target: Buffer,
  at: number,
  length: number,
  type: number,
  flagBits: number,
  stream: number,
): number {
  target[at] = length >>> 16
  target[at + 1] = length >>> 8
  target[at + 2] = length
  target[at + 3] = type
  target[at + 4] = flagBits
  target[at + 5] = stream >>> 24
  target[at + 6] = stream >>> 16
  target[at + 7] = stream >>> 8
  target[at + 8] = stream
  return at + FRAME_HEAD_BYTES
}

/** A frame whose payload is a list of 32-bit numbers. */
export function numbersFrame(type: number, flagBits: number, stream: number, ...numbers: number[]): Buffer {
  const frame = Buffer.allocUnsafe(FRAME_HEAD_BYTES + 4 * numbers.length)
  let at = writeFrameHead(frame, 0, 4 * numbers.length, type, flagBits, stream)
  for (const number of numbers) at = frame.writeUInt32BE(number, at)
  return frame
}

/** A SETTINGS frame (section 6.5). */
export function settingsFrame(settings: readonly (readonly [id: number, value: number])[]): Buffer {
  const frame = Buffer.allocUnsafe(FRAME_HEAD_BYTES + 6 * settings.length)
  let at = writeFrameHead(frame, 0, 6 * settings.length, frameTypes.settings, 0, 0)
  for (const [id, value] of settings) {
    at = frame.writeUInt16BE(id, at)
    at = frame.writeUInt32BE(value, at)
  }
  return frame
}
