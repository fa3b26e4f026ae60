import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')
const pages = globSync(['*.md', 'docs/**/*.md'], { cwd: root })

/** The link anchor that GitHub derives from a heading. */
function anchorsOf(page: string): Set<string> {
  const anchors = new Set<string>()
  for (const [, title = ''] of withoutCode(page).matchAll(/^#+ +(.+)$/gm)) {
    const plain = title.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase()
    const anchor = plain.replace(/[^\p{L}\p{N}\s_-]/gu, '').replaceAll(' ', '-')
    let name = anchor
    for (let n = 1; anchors.has(name); n++) name = `${anchor}-${n}`
    anchors.add(name)
  }
  return anchors
}

function withoutCode(page: string): string {
  return readFileSync(join(root, page), 'utf8').replace(/^```[\s\S]*?^```/gm, '')
}

test.for(pages)('each link in %s leads somewhere', (page) => {
  const broken: string[] = []
  for (const [, target = ''] of withoutCode(page).matchAll(/\]\(([^)\s]+)\)/g)) {
    if (/^[a-z]+:/.test(target)) continue
    const [file = '', anchor] = target.split('#')
    const path = file === '' ? page : join(dirname(page), file)
    if (!existsSync(join(root, path))) broken.push(target)
    else if (anchor !== undefined && path.endsWith('.md') && !anchorsOf(path).has(anchor)) broken.push(target)
  }
  expect(broken).toEqual([])
})
