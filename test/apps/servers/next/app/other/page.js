import { createElement as h } from 'react'

export default function Page() {
  return h('p', { id: 'other' }, 'The other page '.repeat(2000))
}
