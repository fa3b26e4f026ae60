import { createElement as h } from 'react'

export default function Layout({ children }) {
  return h('html', { lang: 'en' }, h('body', null, children))
}
