package podstatus

import "strings"

// Clause is what happened and, where that is known, why: one line that suits a condition.
func Clause(what, why string) string {
	if why == "" {
		return FirstLine(what)
	}
	return FirstLine(what + ": " + why)
}

// FirstLine of a text, cut to the 1024 bytes that an event may have: so a condition and an event say
// the same.
func FirstLine(text string) string {
	const most, cut = 1024, "..."
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most-len(cut)], "") + cut
	}
	return line
}
