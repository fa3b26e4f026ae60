import type { Readable } from 'node:stream'
import { ProxyHeaderError, ProxyHeaderReader } from './proxy-header.ts'

/**
 * Reads the PROXY header at the beginning of a connection. The bytes after it can still be read from the socket.
 *
 * @returns the address in the header; undefined if it has no address
 * @throws {ProxyHeaderError} if the header is missing, malformed or late, or the client ends the connection before it
 */
export function readProxyHeader(socket: Readable, timeoutMs: number): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const reader = new ProxyHeaderReader()
    const stop = (): void => {
      clearTimeout(timer)
      socket.off('readable', onReadable)
      socket.off('end', onClose)
      socket.off('close', onClose)
      socket.off('error', onError)
    }
    const fail = (reason: string): void => {
      stop()
      reject(new ProxyHeaderError(reason))
    }
    const onClose = (): void => fail('the connection ended before the PROXY header')
    // Each error is followed by `close`.
    const onError = (): void => undefined
    const onReadable = (): void => {
      const chunk: unknown = socket.read()
      if (!Buffer.isBuffer(chunk)) return
      try {
        const header = reader.read(chunk)
        if (!header) return
        stop()
        if (header.rest.length > 0) socket.unshift(header.rest)
        resolve(header.address)
      } catch (error) {
        fail(error instanceof Error ? error.message : String(error))
      }
    }
    const timer = setTimeout(() => fail('timed out waiting for the PROXY header'), timeoutMs)
    socket.on('readable', onReadable)
    // Health checks of load balancers connect and half-close the connection. The socket does not close by itself then.
    socket.on('end', onClose)
    socket.on('close', onClose)
    socket.on('error', onError)
  })
}
