import { parentPort, workerData } from 'node:worker_threads'
import { SettingsError } from '../../../shared/settings/settings-error.ts'
import { doAtOnce } from '../../../shared/steps.ts'
import { loadGatewaySettings } from '../../config/settings.ts'
import type { ReadInThread, WhatToRead } from './read-in-thread.ts'
import { writePieces } from './settings-pieces.ts'

// The thread that `readInThread` starts. It reads the settings once, reports them, and exits. Any error other than a SettingsError ends it
// with an exception.

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
