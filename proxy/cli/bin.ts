#!/usr/bin/env node
/*
 * The `sluice` command of the npm package. It uses nothing that an old Node does not have, and imports the command line only after it has
 * checked that this Node is new enough: in an old Node, newer syntax is an error before any code runs.
 */

/** The oldest major version in `engines` of package.json, which npm only warns about. */
const MIN_NODE_MAJOR = 24

const version = process.versions.node
if (Number.parseInt(version, 10) < MIN_NODE_MAJOR) {
  process.stderr.write(
    `Node.js ${MIN_NODE_MAJOR} or later is needed, and this is ${version} (${process.execPath}). In a project, ` +
      `"npm install node@${MIN_NODE_MAJOR}" next to sluice brings one for npx; after "npm install --global", put a newer node first on PATH\n`,
  )
  process.exitCode = 1
} else {
  await import('./main.ts')
}

export {}
