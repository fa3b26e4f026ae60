#!/usr/bin/env node
import { exitOnOutputError } from '../../shared/output-error.ts'
import { runCommandLine } from './run-command-line.ts'

exitOnOutputError()

const status = await runCommandLine(process.argv.slice(2))
if (status !== undefined) process.exitCode = status
