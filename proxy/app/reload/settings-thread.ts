import { parentPort, workerData } from 'node:worker_threads'
import { SettingsError } from '../../../shared/settings/settings-error.ts'
import { doAtOnce } from '../../../shared/steps.ts'
import { loadGatewaySettings } from '../../config/settings.ts'
import type { ReadInThread, WhatToRead } from './read-in-thread.ts'
import { writePieces } from './settings-pieces.ts'

// A thread that `readInThread` starts: reads the settings once, reports them, and exits. An error that is not about the
// settings ends it with that exception.

function read({ env, cwd }: WhatToRead): ReadInThread {
  try {
    const { settings, warnings } = loadGatewaySettings(env, cwd)
    return { pieces: doAtOnce(writePieces(settings)), warnings: warnings.join('\n') }
  } catch (error) {
    if (error instanceof SettingsError) return { mistakes: error.problems.join('\n') }
    throw error
  }
}

parentPort?.postMessage(read(workerData as WhatToRead))
