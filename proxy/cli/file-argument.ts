import { readFile } from 'node:fs/promises'
import { buffer } from 'node:stream/consumers'

/**
 * Reads a file that the command line names, as UTF-8; `-` is standard input.
 *
 * Standard input is read as `process.stdin`, not as file descriptor 0: importing `node:process`, as commander does, makes a pipe there
 * non-blocking, so that reading the descriptor fails with EAGAIN where the writer is slower than the reader.
 */
export async function readFileArgument(path: string): Promise<string> {
  return (await (path === '-' ? buffer(process.stdin) : readFile(path))).toString()
}
