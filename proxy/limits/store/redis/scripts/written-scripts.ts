import { script, type RedisScript } from '../run-script.ts'

/** Maximum number of scripts: each takes some kilobytes, in Redis too. */
const MAX_SCRIPTS = 100

/**
 * Scripts that have values of policies written in them, which Redis would else read from the arguments of each command. They are kept for
 * good, here and in Redis, so only so many are made.
 *
 * @param write makes the Lua with these values
 * @param otherwise takes the values as arguments: for all that come when there are as many scripts as may be
 */
export function createWrittenScripts<Values extends readonly string[]>(
  write: (...values: Values) => string,
  otherwise: RedisScript,
): (...values: Values) => RedisScript {
  const made = new Map<string, RedisScript>()
  return (...values) => {
    const name = values.join('\n')
    const known = made.get(name)
    if (known) return known
    if (made.size >= MAX_SCRIPTS) return otherwise
    const written = script(write(...values))
    made.set(name, written)
    return written
  }
}
