import { inspect } from 'node:util'

export function byteByByte(bytes: Buffer): Buffer[] {
  return Array.from(bytes, (byte) => Buffer.of(byte))
}

/** @throws always: the fuzzer keeps an input for which a target throws */
export function fail(message: string, seen: unknown): never {
  throw new Error(`${message}: ${inspect(seen, { depth: 6 })}`)
}
