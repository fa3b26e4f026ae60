import { printable } from '../../../../shared/settings/problems.ts'

/** A text that comes from a log or a table, as text of a page: nothing in it can be markup, or turn the direction of writing. */
export function escapeHtml(text: string): string {
  return printable(text).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

/** A table of texts, which it escapes; columns whose name begins with `>` are numbers. */
export function htmlTable(
  caption: string,
  columns: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  const classOf = (column: number): string => (columns[column]?.startsWith('>') ? ' class="number"' : '')
  const head = columns.map(
    (name, at) => `<th scope="col"${classOf(at)}>${escapeHtml(name.replace(/^>/, ''))}</th>`,
  )
  const body = rows.map((row) => {
    const cells = row.map((cell, at) =>
      at === 0 ? `<th scope="row">${escapeHtml(cell)}</th>` : `<td${classOf(at)}>${escapeHtml(cell)}</td>`,
    )
    return `<tr>${cells.join('')}</tr>`
  })
  return `<div class="scroll" role="region" aria-label="${escapeHtml(caption)}" tabindex="0"><table><caption>${escapeHtml(caption)}</caption>
<thead><tr>${head.join('')}</tr></thead>
<tbody>
${body.join('\n')}
</tbody></table></div>`
}
