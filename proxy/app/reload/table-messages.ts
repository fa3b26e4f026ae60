/** From a worker: it has started; has prepared a table; cannot prepare it; or applies it. */
export type FromWorker =
  | { readonly table: 'ask' }
  | { readonly table: 'ready' | 'done'; readonly id: number }
  | {
      readonly table: 'failed'
      readonly id: number
      readonly reason: string
      /** In a file that only workers read. */
      readonly mistakes?: readonly string[]
    }

/**
 * To a worker: what it starts with, and a new table in two steps, so that all workers take it or none. The pieces of a table
 * come before; all pieces are in base64.
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

export function isFromWorker(message: unknown): message is FromWorker {
  return typeof message === 'object' && message !== null && 'table' in message
}

export function isToWorker(message: unknown): message is ToWorker {
  return typeof message === 'object' && message !== null && 'table' in message
}
