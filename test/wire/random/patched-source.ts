import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeTemporaryDirectory } from '../../support/run/temporary-directory.ts'

/** A piece of a source file, and its replacement. */
export type Patch = { readonly file: string; readonly from: string; readonly to: string }

const root = join(import.meta.dirname, '../../..')

/**
 * Copies the gateway's source and changes the copy.
 *
 * @param others further folders to copy
 * @returns the root of the copy
 * @throws if a patch does not apply any more
 */
export function copyPatchedSource(patches: readonly Patch[], others: readonly string[] = []): string {
  const copy = makeTemporaryDirectory()
  for (const folder of ['proxy', 'shared', ...others])
    cpSync(join(root, folder), join(copy, folder), { recursive: true })
  cpSync(join(root, 'package.json'), join(copy, 'package.json'))
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  for (const { file, from, to } of patches) {
    const source = readFileSync(join(copy, file), 'utf8')
    if (source.split(from).length !== 2)
      throw new Error(`${file} has changed, so that the defect cannot be put back here:\n${from}`)
    writeFileSync(
      join(copy, file),
      source.replace(from, () => to),
    )
  }
  return copy
}
