import { lacksRight } from '../errors.ts'
import type { RedisNode } from '../run-script.ts'

type InfoCallback = (error: Error | null, info?: string) => void

/**
 * Before a connection is ready, the library asks with `INFO` whether the server has loaded its data, and whether it is the
 * master that Sentinel named. If `INFO` is renamed or the user may not send it, the connection counts as ready without this
 * check: a server that is still loading, or is a replica, says so in reply to the first command.
 */
export function readyWithoutInfo(server: RedisNode): void {
  const info = server.info.bind(server) as (...sections: string[]) => Promise<string>
  const forgiving = (...given: readonly (string | InfoCallback)[]): Promise<string> => {
    const callback = given.find((each) => typeof each === 'function')
    const sections = given.filter((each) => typeof each === 'string')
    const asked = info(...sections).catch((error: unknown) => {
      if (callback && (lacksRight(error) || isUnknown(error))) return ''
      throw error
    })
    if (callback)
      asked.then(
        (text) => callback(null, text),
        (error: unknown) => callback(error instanceof Error ? error : new Error(String(error))),
      )
    return asked
  }
  server.info = forgiving as RedisNode['info']
}

function isUnknown(error: unknown): boolean {
  return error instanceof Error && /^ERR unknown command/i.test(error.message)
}
