#!/usr/bin/env node
import { runCommandLine } from './run-command-line.ts'

// Exit quietly if the reader of the output has exited, as in `sluice replay access.log | head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  process.exit()
})

const status = await runCommandLine(process.argv.slice(2))
if (status !== undefined) process.exitCode = status
