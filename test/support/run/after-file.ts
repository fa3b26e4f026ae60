import { afterAll } from 'vitest'
import { endFile } from './at-end.ts'

// Run by vitest at the start of every test file.
afterAll(endFile)
