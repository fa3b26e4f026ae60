import { protocolsOf, withPage } from './browser.js'

// Writes a post in the editor of WordPress, and reads it; an upload or a save that is refused is repeated, as the author does. Arguments:
// origin, protocol, the title, and the user agent if not Chromium's own.

const [origin, protocol, title, userAgent] = process.argv.slice(2)
/** Avatars and pictures of the editor are on servers of others. */
const NO_OTHER_HOSTS = '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1'

const ownAgent = userAgent === undefined ? [] : [`--user-agent=${userAgent}`]

await withPage(protocol, writePostUninterrupted, [NO_OTHER_HOSTS, ...ownAgent])

/**
 * Does it again if Chromium has ended requests, as it does when another program makes or removes a network interface. The interrupted one
 * may have published its post: the next has another title.
 */
async function writePostUninterrupted(page) {
  let isInterrupted = false
  page.on('requestfailed', (request) => {
    if (request.failure()?.errorText === 'net::ERR_NETWORK_CHANGED') isInterrupted = true
  })
  for (let attempt = 1; ; attempt++) {
    isInterrupted = false
    const own = attempt === 1 ? title : `${title} (attempt ${attempt})`
    try {
      const report = await writePost(page, own)
      if (!isInterrupted) return { ...report, title: report.title.replace(own, title) }
    } catch (error) {
      if (!isInterrupted) throw error
    }
  }
}

async function writePost(page, title) {
  const failures = []
  let refusals = 0
  page.on('requestfailed', (request) => {
    // Leaving a page ends its requests.
    const why = request.failure()?.errorText
    if (why !== 'net::ERR_ABORTED' && request.url().startsWith(origin))
      failures.push(`${why} ${request.url()}`)
  })
  page.on('response', (response) => {
    if (response.status() === 429 && userAgent !== undefined) refusals += 1
    else if (response.status() >= 400) failures.push(`${response.status()} ${response.url()}`)
  })
  page.on('pageerror', (error) => failures.push(String(error)))

  await page.goto(`${origin}/wp-login.php`)
  // The page sets the focus in the first moments; before an author who has signed in already, it also clears the password.
  await page.waitForFunction(() => document.activeElement?.matches('#user_login, #user_pass'))
  await page.locator('#user_login').fill('admin')
  await page.locator('#user_pass').fill('Secret-123')
  await page.locator('#wp-submit').click()
  await page.waitForURL('**/wp-admin/')

  const beganMs = performance.now()
  await page.goto(`${origin}/wp-admin/post-new.php`)
  await page.waitForFunction(() => window.wp?.data?.select('core/editor')?.getCurrentPostId())
  await page.locator('.edit-post-visual-editor').waitFor()
  const editorMs = performance.now() - beganMs

  const image = await page.evaluate(async () => {
    const canvas = Object.assign(document.createElement('canvas'), { width: 300, height: 200 })
    canvas.getContext('2d').fillRect(10, 10, 100, 100)
    const body = new FormData()
    body.append('file', await new Promise((resolve) => canvas.toBlob(resolve)), 'ü.png')
    const upload = () =>
      window.wp.apiFetch({ path: '/wp/v2/media', method: 'POST', body }).catch(() => undefined)
    let media = await upload()
    while (!media) {
      await new Promise((resolve) => setTimeout(resolve, 100))
      media = await upload()
    }
    const { ok } = await fetch(media.source_url)
    return { width: media.media_details.width, isServed: ok }
  })
  const { isSaved, link } = await page.evaluate(async (title) => {
    const editor = window.wp.data.dispatch('core/editor')
    const content = '<!-- wp:paragraph --><p>A paragraph with ü.</p><!-- /wp:paragraph -->'
    await editor.editPost({ title, content, status: 'publish' })
    const saved = window.wp.data.select('core/editor')
    await editor.savePost()
    while (!saved.didPostSaveRequestSucceed()) {
      await new Promise((resolve) => setTimeout(resolve, 100))
      await editor.savePost()
    }
    return { isSaved: saved.didPostSaveRequestSucceed(), link: saved.getPermalink() }
  }, title)
  const protocols = await protocolsOf(page)
  const count = (path) =>
    page.evaluate(
      async (path) => (await window.wp.apiFetch({ path })).length,
      `${path}?search=${encodeURIComponent(title)}`,
    )
  const posts = await count('/wp/v2/posts')
  const isRefused = refusals > 0

  await page.goto(link)
  return {
    isSaved,
    image,
    title: await page.locator('h1').first().innerText(),
    text: await page.getByText('A paragraph with ü.').first().innerText(),
    posts,
    isRefused,
    failures,
    protocols,
    editorMs,
  }
}
