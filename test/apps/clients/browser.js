import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium } from 'playwright-core'

const flags = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--ignore-certificate-errors',
]

/**
 * Debian's Chromium with a profile of its own.
 *
 * @param protocol 'http', 'https' (HTTP/1.1 only) or 'http2'
 * @param use a function that gets a page; its result is printed as JSON
 * @param own other flags of Chromium
 */
export async function withPage(protocol, use, own = []) {
  const profile = mkdtempSync(join(tmpdir(), 'sluice-chromium-'))
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: '/usr/bin/chromium',
    headless: true,
    args: [...flags, ...(protocol === 'https' ? ['--disable-http2'] : []), ...own],
    timeout: 90_000,
  })
  context.setDefaultTimeout(40_000)
  try {
    console.log(JSON.stringify(await use(context.pages()[0] ?? (await context.newPage()))))
  } finally {
    await context.close()
    await rm(profile, { recursive: true, force: true })
  }
}

/** Which protocols the page's resources came over, as the browser says: `http/1.1`, `h2`. */
export function protocolsOf(page) {
  return page.evaluate(() => {
    const entries = [
      ...performance.getEntriesByType('navigation'),
      ...performance.getEntriesByType('resource'),
    ]
    return [...new Set(entries.map((entry) => entry.nextHopProtocol).filter((name) => name !== ''))].sort()
  })
}
