import { script, type RedisScript } from '../run-script.ts'

/** Maximum number of scripts: each takes some kilobytes, in Redis too. */
const MAX_SCRIPTS = 100

/**
 * Makes scripts with the values of policies written in them, which Redis would otherwise read from the arguments of each command. The
 * scripts are kept permanently, here and in Redis, so their number is limited.
 *
 * @param write returns the Lua with these values
 * @param otherwise takes the values as arguments; used once the maximum number of scripts exists
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
