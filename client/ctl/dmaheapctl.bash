# SPDX-License-Identifier: MIT
# Completion of dmaheapctl for bash: verbs and options come from its own --help.
_dmaheapctl()
{
	local current=${COMP_WORDS[COMP_CWORD]} words

	if [ "$COMP_CWORD" -eq 1 ]; then
		words=$(dmaheapctl --help | sed -n 's/^  \([a-z]*\) .*/\1/p')
	elif [ "${COMP_WORDS[COMP_CWORD - 1]}" = --heap ]; then
		words=$(dmaheapctl heaps 2>/dev/null | sed -n '2,$s/ .*//p')
	else
		words=$(dmaheapctl "${COMP_WORDS[1]}" --help 2>/dev/null |
			sed -n 's/^  \(--[a-z-]*\).*/\1/p')
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -o default -F _dmaheapctl dmaheapctl
