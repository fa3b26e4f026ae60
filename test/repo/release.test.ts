import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { findReleaseProblems } from '../../scripts/release.ts'

const changelog = `# Changelog

What changes.

## 2.0.0 (unreleased)

- Something.

## 1.2.3 (2026-11-23)

- Something else.

## 1.2.2 (2026-11-01)

## 1.2.1

- Something older.

## 1.2.0-rc.1 (2026-10-01)

Text.
`

describe('a release is refused', () => {
  test.each([
    ['another version', 'v1.2.3', '1.2.2', 'package.json has version 1.2.2, the tag is v1.2.3'],
    ['an incomplete version', 'v1.2', '1.2', 'the tag "v1.2" is not a v and a version, such as v1.2.3'],
    ['no v', '1.2.3', '1.2.3', 'the tag "1.2.3" is not a v and a version, such as v1.2.3'],
    ['a missing section', 'v1.2.4', '1.2.4', 'CHANGELOG.md has no section "## 1.2.4"'],
    ['a section of another version only', 'v1.2.0', '1.2.0', 'CHANGELOG.md has no section "## 1.2.0"'],
    [
      'an unreleased section',
      'v2.0.0',
      '2.0.0',
      'CHANGELOG.md: "## 2.0.0 (unreleased)" needs the date of the release, such as "## 2.0.0 (2026-11-23)"',
    ],
    [
      'a section without a date',
      'v1.2.1',
      '1.2.1',
      'CHANGELOG.md: "## 1.2.1" needs the date of the release, such as "## 1.2.1 (2026-11-23)"',
    ],
    ['an empty section', 'v1.2.2', '1.2.2', 'CHANGELOG.md: the section "## 1.2.2 (2026-11-01)" is empty'],
  ])('%s', (_, tag, version, problem) => {
    expect(findReleaseProblems(tag, version, changelog)).toEqual([problem])
  })

  test('a refusal lists every problem', () => {
    expect(findReleaseProblems('v3.0.0', '1.2.3', changelog)).toHaveLength(2)
  })
})

test.each(['1.2.3', '1.2.0-rc.1'])('%s can be released', (version) => {
  expect(findReleaseProblems(`v${version}`, version, changelog)).toEqual([])
})

test('the check of this repository fails for a version that it does not have', () => {
  const { status, stderr } = spawnSync(process.execPath, ['scripts/check-release.ts', 'v999.0.0'], {
    encoding: 'utf8',
  })
  expect(status).toBe(1)
  expect(stderr).toContain('CHANGELOG.md has no section "## 999.0.0"\n')
})

describe('the workflow', () => {
  type Step = {
    readonly uses?: string
    readonly run?: string
    readonly with?: Readonly<Record<string, unknown>>
  }
  type Job = {
    readonly needs?: string
    readonly if?: string
    readonly permissions: unknown
    readonly steps: readonly Step[]
  }
  const workflow = parse(readFileSync('.github/workflows/release.yml', 'utf8')) as {
    readonly on: unknown
    readonly permissions: unknown
    readonly jobs: Readonly<Record<'check' | 'image' | 'package', Job>>
  }
  const { check, image, package: npm } = workflow.jobs
  const settingsOf = (job: Job, action: string): Readonly<Record<string, unknown>> =>
    job.steps.find(({ uses }) => uses?.startsWith(`${action}@`))?.with ?? {}

  test('the release workflow runs for tags only, and publishes nothing before the check', () => {
    expect(workflow.on).toEqual({ push: { tags: ['v*'] } })
    expect(Object.keys(workflow.jobs)).toEqual(['check', 'image', 'package'])
    expect(check.steps.at(-1)?.run).toBe('node scripts/check-release.ts "$GITHUB_REF_NAME"')
    // A job with a condition can run even if a job that it needs has failed.
    for (const job of [image, npm]) expect([job.needs, job.if]).toEqual(['check', undefined])
  })

  test('the workflow gives each job only the rights that it needs', () => {
    expect(workflow.permissions).toEqual({})
    expect(check.permissions).toEqual({ contents: 'read' })
    expect(image.permissions).toEqual({ contents: 'read', packages: 'write' })
    expect(npm.permissions).toEqual({ contents: 'read', 'id-token': 'write' })
  })

  test('pins the major version of each action', () => {
    const used = [check, image, npm].flatMap(({ steps }) => steps.flatMap(({ uses }) => uses ?? []))
    expect(used.length).toBeGreaterThan(8)
    for (const action of used) expect(action).toMatch(/^(actions|docker)\/[a-z-]+@v\d+$/)
  })

  test('builds the gateway for both platforms, with provenance and SBOM', () => {
    expect(settingsOf(image, 'docker/build-push-action')).toMatchObject({
      target: 'gateway',
      platforms: 'linux/amd64,linux/arm64',
      push: true,
      provenance: 'mode=max',
      sbom: true,
    })
  })

  test('moves tags for releases only', () => {
    const { tags, flavor } = settingsOf(image, 'docker/metadata-action')
    expect(flavor).toBe('latest=false')
    const [version, ...moving] = String(tags).trim().split('\n')
    expect(version).toBe('type=semver,pattern={{version}}')
    expect(moving).toHaveLength(2)
    for (const tag of moving) expect(tag).toContain("!contains(github.ref_name, '-')")
  })

  test('publishes the package with provenance, and prereleases under another tag', () => {
    const publish = npm.steps.find(({ run }) => run?.startsWith('npm publish'))
    expect(publish).toMatchObject({
      run: 'npm publish --provenance --access public --tag "$DIST_TAG"',
      env: { DIST_TAG: "${{ contains(github.ref_name, '-') && 'next' || 'latest' }}" },
    })
  })

  test('puts no expression of the tag into a shell script', () => {
    for (const { run } of [check, image, npm].flatMap(({ steps }) => steps))
      expect(run ?? '').not.toContain('${{')
  })
})
