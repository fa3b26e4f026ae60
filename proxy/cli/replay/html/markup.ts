import { printable } from '../../../../shared/settings/problems.ts'

/** Escapes a text from a log or a table for a page, so that it contains no markup and cannot change the writing direction. */
export function escapeHtml(text: string): string {
  return printable(text).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

/** Writes a table of texts, which it escapes. Columns whose name begins with `>` are numbers. */
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
