import { afterInput } from '../../../shared/after-input.ts'
import type { UpstreamTimeouts } from './response-deadline.ts'
import type { WaitingOptions } from './waiting/waiting-exchanges.ts'

/** Calls `expire` of a pool often enough that no timeout lasts much longer than it should. Does not keep the process running. */
export function startSweep(
  { firstByteMs, idleMs, queueMs }: UpstreamTimeouts & Pick<WaitingOptions, 'queueMs'>,
  expire: () => void,
): NodeJS.Timeout {
  const everyMs = Math.min(firstByteMs, idleMs, queueMs) / 4
  return setInterval(() => afterInput(expire), Math.max(10, Math.min(500, everyMs))).unref()
}
