/** Messages from a worker: it has started and asks for settings; it has prepared a table; it cannot prepare it; or it has applied it. */
export type FromWorker =
  | { readonly table: 'ask' }
  | { readonly table: 'ready' | 'done'; readonly id: number }
  | {
      readonly table: 'failed'
      readonly id: number
      readonly reason: string
      /** Mistakes in files that only workers read. */
      readonly mistakes?: readonly string[]
    }

/**
 * Messages to a worker: the table that it starts with, and a new table in two steps, so that either all workers apply it or none. The
 * pieces of a new table are sent before these steps, in base64.
 */
export type ToWorker =
  | { readonly table: 'start'; readonly pieces: readonly string[] }
  | { readonly table: 'piece'; readonly id: number; readonly piece: string }
  | {
      readonly table: 'prepare'
      readonly id: number
      readonly tableHash: string
      readonly revised: readonly string[]
    }
  | { readonly table: 'commit' | 'abort'; readonly id: number }

/** Whether a message that the primary process received is about tables. Other parts use the same channel. */
export function isFromWorker(message: unknown): message is FromWorker {
  return typeof message === 'object' && message !== null && 'table' in message
}

/** Whether a message that a worker received is about tables. */
export function isToWorker(message: unknown): message is ToWorker {
  return typeof message === 'object' && message !== null && 'table' in message
}
