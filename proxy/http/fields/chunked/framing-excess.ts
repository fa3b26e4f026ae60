/** The CRLF after a size, and the one after a chunk. */
const LINE_ENDS_BYTES = 4
const FREE_BYTES_EACH = 16
const MAX_EXCESS_BYTES = 16 * 1024

/**
 * Counts the bytes by which the framing of a chunked body exceeds 16 bytes per chunk plus twice the content, and allows 16 KiB of excess.
 * Chunks of one byte are legitimate; chunk sizes and extensions that are longer than the content they frame, again and again, are not
 * (CVE-2023-39326; the bounds are those of Go).
 */
export class FramingExcess {
  #bytes = 0

  /** Starts with a new body. */
  clear(): void {
    this.#bytes = 0
  }

  /**
   * @param lineBytes of the line with the size, without its CRLF
   * @returns whether the excess is still within bounds
   */
  addChunk(lineBytes: number, contentBytes: number): boolean {
    const excess = this.#bytes + lineBytes + LINE_ENDS_BYTES - FREE_BYTES_EACH - 2 * contentBytes
    this.#bytes = Math.max(0, excess)
    return excess <= MAX_EXCESS_BYTES
  }
}
