/** @param {string} id */
export const at = (id) => document.getElementById(id)

/** Writes only changed values, so that nothing is needlessly read out, laid out or deselected. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text
}

export function setClass(element, name) {
  if (element.className !== name) element.className = name
}

/** Makes an element. Children are elements, or texts that cannot become markup. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value)
  element.append(...children)
  return element
}

/**
 * Writes a list to the rows of a table. Each row stays the same element. While the pointer or the focus is in the table, the order stays
 * the same, so that no button moves away from under a pointer.
 */
export function fill(body, list, { keyOf, makeOne, writeOne }) {
  const rows = new Map([...body.children].map((row) => [row.key, row]))
  const isUsed = body.matches(':hover, :focus-within')
  let previous = null
  for (const one of list) {
    const key = keyOf(one)
    let row = rows.get(key)
    rows.delete(key)
    const isNew = !row
    if (!row) {
      row = makeOne(one)
      row.key = key
    }
    writeOne(row, one)
    if (isNew && isUsed) body.append(row)
    else if (!isUsed) {
      const next = previous ? previous.nextSibling : body.firstChild
      if (next !== row) body.insertBefore(row, next)
      previous = row
    }
  }
  for (const row of rows.values()) {
    // If the focused button disappears, the focus moves to the section's title, not to the top of the page.
    const hadFocus = row.contains(document.activeElement)
    row.remove()
    if (hadFocus) body.closest('section').querySelector('h2').focus()
  }
}
