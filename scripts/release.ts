/**
 * Returns the reasons why a tag cannot be released, one sentence each; empty if it can be released.
 *
 * @param tag such as `v1.2.3` or `v1.3.0-rc.1`
 * @param version of package.json
 * @param changelog the text of CHANGELOG.md: a section begins with `## 1.2.3 (2026-11-23)`
 */
export function findReleaseProblems(tag: string, version: string, changelog: string): string[] {
  if (!/^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/.test(tag))
    return [`the tag ${JSON.stringify(tag)} is not a v and a version, such as v1.2.3`]
  const problems = []
  const released = tag.slice(1)
  if (version !== released) problems.push(`package.json has version ${version}, the tag is ${tag}`)
  const problem = findSectionProblem(released, changelog)
  return problem === undefined ? problems : [...problems, problem]
}

function findSectionProblem(version: string, changelog: string): string | undefined {
  const sections = changelog.split(/^## /m).slice(1)
  const section = sections.find((text) => /^\S*/.exec(text)?.[0] === version)
  if (section === undefined) return `CHANGELOG.md has no section "## ${version}"`
  const [heading = '', ...lines] = section.split('\n')
  if (!/^\S+ \(\d{4}-\d{2}-\d{2}\)$/.test(heading))
    return `CHANGELOG.md: "## ${heading}" needs the date of the release, such as "## ${version} (2026-11-23)"`
  const hasText = lines.some((line) => line.trim() !== '' && !line.startsWith('#'))
  return hasText ? undefined : `CHANGELOG.md: the section "## ${heading}" is empty`
}
