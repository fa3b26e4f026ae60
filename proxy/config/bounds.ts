import { totalmem } from 'node:os'

/** Bounds that are the same for every gateway. They are chosen so that nobody needs another value: see docs/decisions/settings.md. */
export type Bounds = {
  /** Maximum number of headers of a request, and the same number of trailers. */
  readonly maxHeaderCount: number
  /** Maximum bytes of a request target (path and query). */
  readonly maxTargetBytes: number
  /** Maximum concurrent requests on one HTTP/2 connection of a client. */
  readonly maxStreams: number
  /** Maximum bytes of a response to buffer for a client that is slower than the backend. */
  readonly responseBufferBytes: number
  /** Maximum bytes of unread responses, for all clients together. */
  readonly maxUnreadBytes: number
  /** Maximum age of a connection to the backend. New connections resolve its name again. */
  readonly upstreamMaxAgeMs: number
  /** Maximum number of requests on one connection to the backend. */
  readonly upstreamMaxRequests: number
  /** Time to buffer spans before a batch is exported. */
  readonly spanDelayMs: number
}

const MiB = 1024 * 1024

/** @param memoryBytes memory for all workers together */
export function boundsFor(
  { maxHeaderBytes, workers }: { readonly maxHeaderBytes: number; readonly workers: number },
  memoryBytes = memoryLimit(),
): Bounds {
  return {
    maxHeaderCount: 100,
    maxTargetBytes: maxHeaderBytes / 2,
    maxStreams: 100,
    responseBufferBytes: 256 * 1024,
    // If there is little memory, use less than the usual 192 MiB.
    maxUnreadBytes: Math.max(8 * MiB, Math.min(192 * MiB, Math.floor(memoryBytes / 4 / workers))),
    upstreamMaxAgeMs: 30_000,
    upstreamMaxRequests: 10_000,
    spanDelayMs: 5_000,
  }
}

/** The memory of the container, or of the machine if the container's is not limited. */
function memoryLimit(): number {
  const ofContainer = process.constrainedMemory()
  return ofContainer > 0 ? Math.min(ofContainer, totalmem()) : totalmem()
}
