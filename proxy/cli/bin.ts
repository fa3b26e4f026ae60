#!/usr/bin/env node
/*
 * The `sluice` of the npm package. It imports nothing that an old Node does not have, and the command line only when this Node is
 * known to be new enough: newer syntax is an error in an old one, before any code runs.
 */

/** The oldest major version in `engines` of package.json, which npm only warns about. */
const oldestMajor = 24

const version = process.versions.node
if (Number.parseInt(version, 10) < oldestMajor) {
  process.stderr.write(
    `Node.js ${oldestMajor} or later is needed, and this is ${version} (${process.execPath}). In a project, ` +
      `"npm install node@${oldestMajor}" next to sluice brings one for npx; after "npm install --global", put a newer node first on PATH\n`,
  )
  process.exitCode = 1
} else {
  await import('./main.ts')
}

export {}
