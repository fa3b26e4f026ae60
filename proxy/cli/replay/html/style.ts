/** The style of the page, light or dark like the reader's system. It uses no web fonts and no images. */
export const style = `:root { color-scheme: light dark; --text: #1c2024; --quiet: #5b636b; --line: #d5d9dd; --back: #fff; --passed: #2f7fc1; --refused: #c43d3d }
@media (prefers-color-scheme: dark) { :root { --text: #e6e8ea; --quiet: #a3abb3; --line: #3a4046; --back: #16191c; --passed: #4f9fe0; --refused: #f07070 } }
* { box-sizing: border-box }
body { margin: 0 auto; padding: 1rem; max-width: 62rem; background: var(--back); color: var(--text); font: 16px/1.5 system-ui, sans-serif }
h1 { font-size: 1.5rem; margin: 0 0 .5rem } h2 { font-size: 1.2rem; margin: 2.5rem 0 .5rem; overflow-wrap: anywhere }
p, ul { margin: .4rem 0 } figure { margin: 1rem 0 .5rem } figcaption, caption, summary { color: var(--quiet); text-align: left; font-size: .9rem }
svg { display: block; width: 100%; height: auto } svg text { fill: var(--quiet); font: 11px system-ui, sans-serif }
.passed { fill: var(--passed) } .refused { fill: var(--refused) } .axis { fill: none; stroke: var(--line) } .limit { stroke: var(--text); stroke-dasharray: 4 3 }
.key::before { content: ""; display: inline-block; width: .8em; height: .8em; margin: 0 .3em 0 .8em; background: var(--passed) } .key.over::before { background: var(--refused) }
.scroll { overflow-x: auto } table { border-collapse: collapse; font-size: .9rem; width: 100% }
th, td { padding: .25rem .6rem .25rem 0; border-bottom: 1px solid var(--line); text-align: left; font-weight: normal; overflow-wrap: anywhere; vertical-align: top }
thead th { font-weight: 600 } .number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
@media (max-width: 40rem) { body { padding: .6rem } figure { overflow-x: auto } svg { min-width: 38rem } .scroll table { min-width: 34rem } }
pre { padding: .8rem; border: 1px solid var(--line); overflow-x: auto; font-size: .85rem }
`
