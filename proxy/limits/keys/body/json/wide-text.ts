/** Converts a body in UTF-16 or UTF-32, which Python's `json` detects, to UTF-8, one character per byte; undefined for any other body. */
export function wideTextOf(bytes: Buffer): string | undefined {
  if (!isWideText(bytes)) return undefined
  const isBigEndian = bytes[0] === 0 || bytes[0] === 0xfe
  const isUtf32 = isBigEndian ? bytes[0] === 0 && bytes[1] === 0 : bytes[2] === 0 && bytes[3] === 0
  const units = isUtf32 ? utf16Of(bytes, isBigEndian) : bytes.subarray(0, bytes.length & ~1)
  const text = (isBigEndian && !isUtf32 ? Buffer.from(units).swap16() : units).toString('utf16le')
  return Buffer.from(text.replace(/^\ufeff/, '')).toString('latin1')
}

/** Converts UTF-32 to little-endian UTF-16. */
function utf16Of(bytes: Buffer, isBigEndian: boolean): Buffer {
  const units = Buffer.allocUnsafe(bytes.length)
  let end = 0
  for (let at = 0; at + 4 <= bytes.length; at += 4) {
    const code = Math.min(isBigEndian ? bytes.readUInt32BE(at) : bytes.readUInt32LE(at), 0x10_ffff)
    if (code > 0xffff) end = units.writeUInt16LE(0xd800 + ((code - 0x1_0000) >> 10), end)
    end = units.writeUInt16LE(code > 0xffff ? 0xdc00 + ((code - 0x1_0000) & 0x3ff) : code, end)
  }
  return units.subarray(0, end)
}

/** Whether a text begins with a byte order mark of UTF-16, or has a NUL among its first two bytes, as ASCII has in UTF-16 and UTF-32. */
export function isWideText(bytes: Buffer): boolean {
  const [first, second] = bytes
  return (
    first === 0 || second === 0 || (first === 0xfe && second === 0xff) || (first === 0xff && second === 0xfe)
  )
}
