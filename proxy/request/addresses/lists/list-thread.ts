import { parentPort, workerData } from 'node:worker_threads'
import { readList } from './read-list.ts'
import type { ListAsked, ListAnswer } from './read-in-thread.ts'
import { buffersOf } from './sorted-ranges.ts'

// The thread that `readListInThread` starts. Reads one list, transfers it, and exits.

function answer({ path, find }: ListAsked): ListAnswer {
  try {
    return { read: readList(path, find) }
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) }
  }
}

const reply = answer(workerData as ListAsked)
parentPort?.postMessage(reply, 'read' in reply && 'data' in reply.read ? buffersOf(reply.read.data) : [])
