import type { Values, Verb, VerbOption } from '../command-tree.ts'

/** Writes a script for zsh. Source it after `compinit`, or save it as `_sluice` in a folder of `fpath`. */
export function zshCompletion(verbs: readonly Verb[]): string {
  const names = verbs.map(({ name, description }) => `    ${quote(`${name}:${description}`)}`)
  const cases = verbs.map(({ name, options, takes }) => {
    const specs = [...options.map(optionSpec), `*: :${actionOf(takes)}`]
    return `        ${name})\n          _arguments -s \\\n${specs.map((spec) => `            ${quote(spec)}`).join(' \\\n')}\n          ;;`
  })
  return `#compdef sluice
# Completion of sluice for zsh: source <(sluice completion zsh)
_sluice() {
  local curcontext=$curcontext state line
  local -a verbs
  verbs=(
${names.join('\n')}
    'help:display help for a verb'
  )
  _arguments -C '1: :->verb' '*:: :->rest'
  case $state in
    verb) _describe -t commands verb verbs ;;
    rest)
      case $words[1] in
        help) _describe -t commands verb verbs ;;
${cases.join('\n')}
      esac
      ;;
  esac
}
if [[ $funcstack[1] == _sluice ]]; then
  _sluice "$@"
else
  compdef _sluice sluice
fi
`
}

function optionSpec({ flag, description, values, repeats }: VerbOption): string {
  const explained = description.replace(/[\\[\]:]/g, String.raw`\$&`)
  return `${repeats ? '*' : ''}${flag}${values ? '=' : ''}[${explained}]${values ? `: :${actionOf(values)}` : ''}`
}

function actionOf(values: Values): string {
  if (values.kind === 'choices') return `(${values.of.join(' ')})`
  return values.kind === 'files' ? '_files' : ' '
}

function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}
