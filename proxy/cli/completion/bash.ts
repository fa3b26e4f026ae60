import type { Values, Verb } from '../command-tree.ts'

/**
 * Writes a script for bash 3.2 (the version of macOS) and later. It completes verbs, options, and values that can be listed.
 *
 * Bash also splits a line at `=`, so that `--format=c` is three words.
 */
export function bashCompletion(verbs: readonly Verb[]): string {
  const values = verbs.flatMap(({ name, options }) =>
    options.flatMap(({ flag, values: of }) =>
      of ? [`    '${name} ${flag}') ${complete(of)}; return ;;`] : [],
    ),
  )
  const options = verbs.map(
    ({ name, options: all }) => `      ${name}) words='${wordsOf(all.map(({ flag }) => flag))}' ;;`,
  )
  const args = verbs.flatMap(({ name, takes }) =>
    takes.kind === 'other' ? [] : [`    ${name}) ${complete(takes)} ;;`],
  )
  return `# Completion of sluice for bash: source <(sluice completion bash)
_sluice_words() {
  COMPREPLY=($(compgen -W "$1" -- "$2"))
}
_sluice_files() {
  local IFS=$'\\n'
  compopt -o filenames 2>/dev/null
  COMPREPLY=($(compgen -f -- "$1"))
}
_sluice() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD - 1]} verb= words= i
  COMPREPLY=()
  if [[ $cur == '=' ]]; then
    cur=
  elif [[ $prev == '=' ]] && ((COMP_CWORD > 1)); then
    prev=\${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    [[ \${COMP_WORDS[i]} == -* ]] || { verb=\${COMP_WORDS[i]}; break; }
  done
  if [[ -z $verb ]]; then
    _sluice_words '${wordsOf([...verbs.map(({ name }) => name), 'help', '--help'])}' "$cur"
    return
  fi
  case "$verb $prev" in
${values.join('\n')}
  esac
  if [[ $cur == -* ]]; then
    case $verb in
${options.join('\n')}
    esac
    _sluice_words "$words" "$cur"
    return
  fi
  case $verb in
    help) _sluice_words '${wordsOf(verbs.map(({ name }) => name))}' "$cur" ;;
${args.join('\n')}
  esac
}
complete -F _sluice sluice
`
}

function complete(values: Values): string {
  if (values.kind === 'choices') return `_sluice_words '${wordsOf(values.of)}' "$cur"`
  return values.kind === 'files' ? '_sluice_files "$cur"' : ':'
}

function wordsOf(words: readonly string[]): string {
  return words.join(' ')
}
