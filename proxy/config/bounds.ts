import { totalmem } from 'node:os'

/** Bounds that are the same for every gateway. They were chosen so that nobody needs another value: see docs/decisions/settings.md. */
export type Bounds = {
  /** Maximum headers of a request, and again of its trailers. */
  readonly maxHeaderCount: number
  /** Bytes of a request target (path and query). */
  readonly maxTargetBytes: number
  /** Concurrent requests on one HTTP/2 connection of a client. */
  readonly maxStreams: number
  /** Bytes of a response to buffer for a client that is slower than the backend. */
  readonly responseBufferBytes: number
  /** Bytes of unread responses of all clients together. */
  readonly maxUnreadBytes: number
  /** Age of a connection to the backend; new connections resolve its name again. */
  readonly upstreamMaxAgeMs: number
  /** Requests on one connection to the backend. */
  readonly upstreamMaxRequests: number
  /** Time to buffer spans before a batch is exported. */
  readonly spanDelayMs: number
}

const MiB = 1024 * 1024

/** @param memoryBytes for all workers */
export function boundsFor(
  { maxHeaderBytes, workers }: { readonly maxHeaderBytes: number; readonly workers: number },
  memoryBytes = memoryLimit(),
): Bounds {
  return {
    maxHeaderCount: 100,
    maxTargetBytes: maxHeaderBytes / 2,
    maxStreams: 100,
    responseBufferBytes: 256 * 1024,
    // Where there is little memory, less than the usual part of it.
    maxUnreadBytes: Math.max(8 * MiB, Math.min(192 * MiB, Math.floor(memoryBytes / 4 / workers))),
    upstreamMaxAgeMs: 30_000,
    upstreamMaxRequests: 10_000,
    spanDelayMs: 5_000,
  }
}

/** The memory of the container, or of the machine if that is not limited. */
function memoryLimit(): number {
  const ofContainer = process.constrainedMemory()
  return ofContainer > 0 ? Math.min(ofContainer, totalmem()) : totalmem()
}
