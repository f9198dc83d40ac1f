package podstatus

import "strings"

// Clause is what happened and, where that is known, why: one line that suits a condition.
func Clause(what, why string) string {
	if why == "" {
		return FirstLine(what)
	}
	return FirstLine(what + ": " + why)
}

// FirstLine of a text, cut to the 1024 bytes that an event may have: so a condition and an event
// say the same.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return Within(line, 1024)
}

// Within is a text of so many bytes at most. Where it is cut, that shows.
func Within(text string, most int) string {
	const cut = "..."
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(cut)], "") + cut
}
